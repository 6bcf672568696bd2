/**
 * Interpreters that are shell scripts, and a log that remembers.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Log } from '../../src/log';

/** A fresh folder that is removed when the process ends. */
export function temporaryFolder(): string {
  const made = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'inductoscope-')));
  process.on('exit', () => {
    fs.rmSync(made, { recursive: true, force: true });
  });
  return made;
}

/** Writes an executable that prints `answer` whatever it is asked; gives its path. */
export function interpreterAt(file: string, answer: unknown = { python: [3, 12], inductoscope: '0.1.0' }): string {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `#!/bin/sh\ncat <<'END'\n${JSON.stringify(answer)}\nEND\n`, { mode: 0o755 });
  return file;
}

export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const line = (level: string) => (text: unknown) => lines.push(`${level}: ${String(text)}`);
  const log = { info: line('info'), warn: line('warn'), error: line('error'), show: () => lines.push('shown') };
  return { log: log as unknown as Log, lines };
}
