/**
 * A small stand-in for the editor's API: what the extension uses, holding what a test puts in.
 */
import path from 'node:path';

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
  ) {}
  static file(name: string): Uri {
    return new Uri('file', path.resolve(name));
  }
  static parse(text: string): Uri {
    const { protocol, pathname } = new URL(text);
    return new Uri(protocol.slice(0, -1), decodeURIComponent(pathname));
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.path.split('/').map(encodeURIComponent).join('/')}`;
  }
}

export class EventEmitter<T> {
  private readonly listeners: ((value: T) => unknown)[] = [];
  readonly event = (listener: (value: T) => unknown) => {
    this.listeners.push(listener);
    return { dispose: () => undefined };
  };
  fire(value: T): void {
    this.listeners.forEach((listener) => listener(value));
  }
}

export enum LanguageStatusSeverity {
  Information = 0,
  Warning = 1,
  Error = 2,
}

export interface Folder {
  readonly uri: Uri;
  readonly name: string;
  readonly index: number;
}

/** What a test sets and reads. */
export interface State {
  /** Settings by full name, and by folder name and full name for a folder's own. */
  settings: Record<string, unknown>;
  defaults: Record<string, unknown>;
  extensions: Record<string, unknown>;
  executed: { command: string; args: unknown[] }[];
  messages: string[];
  /** The button that is pressed in each message. */
  answer: string | undefined;
  registered: Map<string, (...args: unknown[]) => unknown>;
  opened: string[];
  statusItems: Record<string, unknown>[];
}

export const state: State = freshState();

function freshState(): State {
  return {
    settings: {},
    defaults: {},
    extensions: {},
    executed: [],
    messages: [],
    answer: undefined,
    registered: new Map(),
    opened: [],
    statusItems: [],
  };
}

export function reset(): void {
  Object.assign(state, freshState());
  workspace.isTrusted = true;
  workspace.workspaceFolders = undefined;
  window.activeTextEditor = undefined;
}

export function folder(name: string): Folder {
  return { uri: Uri.file(name), name: path.basename(name), index: 0 };
}

function configuration(section: string, scope: Uri | undefined) {
  const key = (name: string) => `${section}.${name}`;
  const own = (name: string) => (scope ? state.settings[`${scope.fsPath}:${key(name)}`] : undefined);
  return {
    get: (name: string, fallback?: unknown) =>
      own(name) ?? state.settings[key(name)] ?? state.defaults[key(name)] ?? fallback,
    inspect: (name: string) => ({
      defaultValue: state.defaults[key(name)],
      globalValue: state.settings[key(name)],
      workspaceFolderValue: own(name),
    }),
  };
}

export const workspace = {
  isTrusted: true,
  workspaceFolders: undefined as Folder[] | undefined,
  getConfiguration: configuration,
  getWorkspaceFolder: (uri: Uri) =>
    workspace.workspaceFolders?.find((candidate) => uri.fsPath.startsWith(candidate.uri.fsPath)),
  openTextDocument: ({ content }: { content: string }) => Promise.resolve(content),
};

function showMessage(message: string): Promise<string | undefined> {
  state.messages.push(message);
  return Promise.resolve(state.answer);
}

export const window = {
  activeTextEditor: undefined as
    { document: { uri: Uri }; selection: { active: { line: number; character: number } } } | undefined,
  showErrorMessage: showMessage,
  showInformationMessage: showMessage,
  showTextDocument: (content: string) => Promise.resolve(state.opened.push(content)),
};

export const commands = {
  registerCommand(name: string, handler: (...args: unknown[]) => unknown) {
    if (state.registered.has(name)) {
      throw new Error(`command ${name} is registered already`);
    }
    state.registered.set(name, handler);
    return { dispose: () => state.registered.delete(name) };
  },
  async executeCommand(command: string, ...args: unknown[]) {
    state.executed.push({ command, args });
    return await state.registered.get(command)?.(...args);
  },
};

export const extensions = { getExtension: (id: string) => state.extensions[id] };

export const languages = {
  createLanguageStatusItem(id: string, selector: unknown) {
    const item = { id, selector, dispose: () => undefined };
    state.statusItems.push(item);
    return item;
  },
};

export const env = { appName: 'Test Editor' };
export const version = '1.91.0';
