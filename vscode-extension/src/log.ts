/**
 * The one output channel.  Its level follows the editor's own "Set Log Level"; this module knows nothing else.
 */
import * as vscode from 'vscode';

export type Log = vscode.LogOutputChannel;

export function createLog(): Log {
  return vscode.window.createOutputChannel('Inductoscope', { log: true });
}
