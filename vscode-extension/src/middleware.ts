/**
 * Where the editor's own answer to the server is not the best one: settings, and how a report is shown.
 */
import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';
import { ID } from './names';
import { ARTIFACT_SCHEME } from './protocol';
import { serverSettings } from './settings';

type AnswerConfiguration = NonNullable<NonNullable<Middleware['workspace']>['configuration']>;
type ShowDocument = NonNullable<NonNullable<Middleware['window']>['showDocument']>;

/** Our own section is answered by `settings.ts`, any other by the editor. */
const configuration: AnswerConfiguration = (parameters, token, next) => {
  const answers = parameters.items.map(async (item) => {
    if (item.section !== ID) {
      const others = await next({ items: [item] }, token);
      return Array.isArray(others) ? (others[0] as unknown) : null;
    }
    const scope = item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri);
    return serverSettings(scope && vscode.workspace.getWorkspaceFolder(scope));
  });
  return Promise.all(answers);
};

/** A report is read beside the program, with its kernels highlighted; any other document is opened as it is. */
const showDocument: ShowDocument = async (parameters, token, next) => {
  const uri = vscode.Uri.parse(parameters.uri);
  if (uri.scheme !== ARTIFACT_SCHEME || !uri.path.endsWith('.md')) {
    return next(parameters, token);
  }
  try {
    await vscode.commands.executeCommand('markdown.showPreviewToSide', uri);
    return { success: true };
  } catch {
    return next(parameters, token); // the editor's Markdown support can be switched off
  }
};

export const middleware: Middleware = { workspace: { configuration }, window: { showDocument } };
