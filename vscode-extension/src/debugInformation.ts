/**
 * The text that a bug report needs: versions, the server's command line, settings, states.  No code, no file contents.
 */
import * as vscode from 'vscode';
import { ID } from './names';
import type { Status } from './protocol';
import type { ServerCommand } from './server';
import { serverSettings } from './settings';

export async function debugInformation(
  extension: vscode.Extension<unknown>,
  command: ServerCommand | undefined,
  status: Status | undefined,
): Promise<string> {
  const version = (extension.packageJSON as { readonly version: string }).version;
  const facts: [string, string | null | undefined][] = [
    ['Extension', version],
    ['Editor', `${vscode.env.appName} ${vscode.version}, ${process.platform} ${process.arch}`],
    ['Workspace', vscode.workspace.isTrusted ? 'trusted' : 'restricted'],
    ['Server', command && `${[command.command, ...command.args].join(' ')} (${command.origin})`],
    ['State', status && `${status.health}, ${status.quiescent ? 'idle' : 'busy'}: ${status.message}`],
    ['Interpreter', status?.interpreter],
    ['Python', status?.python],
    ['torch', status?.torch],
    ['Triton', status?.triton],
    ['Device', status?.device],
  ];
  const targets = (status?.targets ?? []).map((target) => `- ${target.name}: ${target.state}, ${target.summary}`);
  return [
    '# Inductoscope: debug information',
    '',
    ...facts.map(([name, value]) => `- ${name}: ${value ?? 'unknown'}`),
    '',
    '## Targets',
    '',
    ...(targets.length > 0 ? targets : ['None.']),
    '',
    '## Settings that differ from the defaults',
    '',
    '```json',
    JSON.stringify(await settingsByFolder(), undefined, 2),
    '```',
    '',
  ].join('\n');
}

async function settingsByFolder(): Promise<Record<string, unknown>> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const entries = folders.map(async (folder) => [folder.name, await serverSettings(folder)] as const);
  return { [ID]: await serverSettings(undefined), ...Object.fromEntries(await Promise.all(entries)) };
}
