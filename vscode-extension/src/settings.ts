/**
 * Hands the user's settings to the server.
 *
 * Only what somebody set is handed over: the editor fills defaults in for the rest, and these would hide what the
 * project says in its pyproject.toml.
 */
import * as vscode from 'vscode';
import { findInterpreter, InterpreterError } from './interpreter';

/** The settings that the server reads, by their names there and (after `inductoscope.`) here. */
export const SERVER_SETTINGS = [
  'device',
  'run',
  'rung',
  'timeout',
  'memory',
  'show',
  'hide',
  'inlayHints',
  'probe',
] as const;

/** The server's section of the configuration for one folder, or for files outside any folder. */
export async function serverSettings(folder: vscode.WorkspaceFolder | undefined): Promise<Record<string, unknown>> {
  const configuration = vscode.workspace.getConfiguration('inductoscope', folder?.uri);
  const entries = SERVER_SETTINGS.map((name) => [name, explicit(configuration, name)] as const);
  const chosen = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  return { ...chosen, ...(await interpreterSetting(folder)) };
}

/** What is set for the folder, the workspace or the user, the nearest first; undefined where only the default holds. */
function explicit(configuration: vscode.WorkspaceConfiguration, name: string): unknown {
  const found = configuration.inspect(name);
  return found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
}

/** The interpreter, where the editor knows better than the server, which looks for environments and on PATH itself. */
async function interpreterSetting(folder: vscode.WorkspaceFolder | undefined): Promise<{ interpreter?: string[] }> {
  try {
    const found = await findInterpreter(folder);
    const known = found?.source === 'setting' || found?.source === 'python-extension';
    return known ? { interpreter: [...found.command] } : {};
  } catch (error) {
    if (error instanceof InterpreterError) {
      return { interpreter: error.command }; // the server says that it cannot be started, rather than taking another
    }
    throw error;
  }
}
