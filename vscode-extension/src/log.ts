/**
 * The one output channel.  Its level follows the editor's own "Set Log Level"; what the server writes to its standard
 * error joins it here, each line at the level that it names.
 */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import * as vscode from 'vscode';

export type Log = vscode.LogOutputChannel;

type Level = 'debug' | 'info' | 'warn' | 'error';

const LEVELS: Readonly<Record<string, Level>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'error',
};

/** How the server writes a line: date, time, level, and who says what. */
const LINE = /^\d{4}-\d\d-\d\d [\d:,.]+ ([A-Z]+) (.*)$/;

export function createLog(): Log {
  return vscode.window.createOutputChannel('Inductoscope', { log: true });
}

/** Passes the server's log on.  A line without a level belongs to the one before it, as those of a traceback do. */
export function forwardServerLog(input: Readable, log: Log): void {
  let level: Level = 'error'; // what comes before any log line is the interpreter's own complaint
  createInterface({ input, crlfDelay: Infinity, terminal: false, historySize: 0 }).on('line', (line) => {
    const [, name = '', said = line] = LINE.exec(line) ?? [];
    level = LEVELS[name] ?? level;
    log[level](said);
  });
}
