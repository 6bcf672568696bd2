/**
 * Finds the Python interpreter of a workspace folder: the one that has the user's torch.
 *
 * Order: the setting, the Python extension's choice, a virtual environment in the folder, PATH.  The Python extension
 * is asked when it is there and never required.  This module only names an interpreter; whether it can run the server
 * is `server.ts`'s question.
 */
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';

export type Source = 'setting' | 'python-extension' | 'virtual-environment' | 'path';

export interface Interpreter {
  /** The command that starts it: one executable, or a prefix such as `conda run -n torch python`. */
  readonly command: readonly [string, ...string[]];
  readonly source: Source;
}

/** The setting names a command that is not there; the message says so that a user can act on it. */
export class InterpreterError extends Error {
  constructor(readonly command: string[]) {
    super(
      `The setting inductoscope.interpreter names ${command[0]}, which is not an executable file. ` +
        'Correct the setting, or remove it to have an interpreter looked for.',
    );
  }
}

/** The part of the Python extension's public API that is used here. */
export interface PythonExtensionApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const VIRTUAL_ENVIRONMENTS = ['.venv', 'venv'];
const PYTHON_EXTENSION = 'ms-python.python';
const WINDOWS = process.platform === 'win32';

type Finder = (folder: vscode.WorkspaceFolder | undefined) => string | undefined | Promise<string | undefined>;

const CANDIDATES: readonly { readonly source: Source; readonly find: Finder }[] = [
  { source: 'python-extension', find: fromPythonExtension },
  { source: 'virtual-environment', find: fromVirtualEnvironment },
  { source: 'path', find: () => onPath(WINDOWS ? ['python.exe', 'python3.exe'] : ['python3', 'python']) },
];

/** The Python extension's API, or undefined where that extension is absent or does not start. */
export async function pythonExtension(): Promise<PythonExtensionApi | undefined> {
  const extension = vscode.extensions.getExtension<Partial<PythonExtensionApi> | undefined>(PYTHON_EXTENSION);
  if (!extension) {
    return undefined;
  }
  try {
    const api = await extension.activate();
    return api?.environments ? { environments: api.environments } : undefined; // releases before 2023 have none
  } catch {
    return undefined; // it reports its own failure
  }
}

/**
 * The interpreter of a folder (undefined: of files outside any folder), or undefined where none was found.
 * In an untrusted workspace an interpreter that lies inside a workspace folder counts as not found, since starting it
 * would run what the workspace brought.
 *
 * @throws InterpreterError when the setting names something that is not there
 */
export async function findInterpreter(folder: vscode.WorkspaceFolder | undefined): Promise<Interpreter | undefined> {
  const setting = vscode.workspace.getConfiguration('inductoscope', folder?.uri).get<string[]>('interpreter', []);
  if (setting.length > 0) {
    return fromSetting(
      setting.map((part) => expandVariables(part, folder)),
      folder,
    );
  }
  for (const { source, find } of CANDIDATES) {
    const found = await find(folder);
    if (found && (vscode.workspace.isTrusted || !insideWorkspace(found))) {
      return { command: [found], source };
    }
  }
  return undefined;
}

/** The first word of the setting is looked up on PATH when it is a bare name; a relative path starts at the folder. */
function fromSetting(words: string[], folder: vscode.WorkspaceFolder | undefined): Interpreter {
  const [program = '', ...rest] = words;
  const bare = path.basename(program) === program;
  const found = bare ? onPath([program]) : path.resolve(folder?.uri.fsPath ?? os.homedir(), program);
  if (!found || !isExecutable(found)) {
    throw new InterpreterError(words);
  }
  return { command: [found, ...rest], source: 'setting' };
}

async function fromPythonExtension(folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
  const api = await pythonExtension();
  if (!api) {
    return undefined;
  }
  const active = api.environments.getActiveEnvironmentPath(folder?.uri);
  const environment = await api.environments.resolveEnvironment(active);
  const executable = environment?.executable.uri?.fsPath;
  return executable && isExecutable(executable) ? executable : undefined;
}

function fromVirtualEnvironment(folder: vscode.WorkspaceFolder | undefined): string | undefined {
  if (!folder) {
    return undefined;
  }
  const inside = WINDOWS ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return VIRTUAL_ENVIRONMENTS.map((name) => path.join(folder.uri.fsPath, name, ...inside)).find(isExecutable);
}

/** The first of some programs on PATH.  Entries that are not absolute would depend on the working folder: left out. */
function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((entry) => path.isAbsolute(entry));
  return folders.flatMap((entry) => names.map((name) => path.join(entry, name))).find(isExecutable);
}

/** Replaces `${workspaceFolder}`, `${userHome}`, `${env:NAME}` and a leading `~`; what is unknown becomes empty. */
export function expandVariables(text: string, folder: vscode.WorkspaceFolder | undefined): string {
  return text
    .replace(/^~(?=$|[\\/])/, os.homedir())
    .replaceAll('${workspaceFolder}', folder?.uri.fsPath ?? '')
    .replaceAll('${userHome}', os.homedir())
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => process.env[name] ?? '');
}

function insideWorkspace(file: string): boolean {
  return (vscode.workspace.workspaceFolders ?? []).some((folder) => {
    const relative = path.relative(folder.uri.fsPath, file);
    return !relative.startsWith('..') && !path.isAbsolute(relative);
  });
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
