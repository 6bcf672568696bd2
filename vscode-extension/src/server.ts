/**
 * Decides which command line starts the language server.
 *
 * `inductoscope` from the interpreter's own environment is preferred; else the copy that the extension brings
 * (`bundled/libs`, pure Python) runs in the same interpreter.  The worker that runs the user's program is started by
 * the server, in the user's interpreter, either way.
 */
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';

export type ImportStrategy = 'fromEnvironment' | 'useBundled';

/** What an interpreter said about itself; `inductoscope` is the version installed there. */
export interface Probe {
  readonly python: readonly [number, number];
  readonly inductoscope: string | null;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly origin: 'environment' | 'bundled';
  /** Version of the server package, where it is known before the start. */
  readonly version: string | null;
}

/** Why an interpreter cannot run the server, said so that a user can act on it. */
export class ServerError extends Error {}

const OLDEST_PYTHON: readonly [number, number] = [3, 10];
const PROBE_TIMEOUT_MS = 20_000; // a cold interpreter on a network drive is slow; a hanging one must not hang us
const PROBE = `
import importlib.metadata as metadata, json, sys
try:
    version = metadata.version("inductoscope")
except metadata.PackageNotFoundError:
    version = None
print(json.dumps({"python": sys.version_info[:2], "inductoscope": version}))
`;

/**
 * Asks an interpreter for its version and for the server package.
 *
 * @param cwd a folder of ours: `python -c` and `python -m` put the working folder on the module path, so starting in
 *   the user's folder would import the user's modules, trusted or not
 * @throws ServerError when it does not answer
 */
export async function probe(interpreter: readonly [string, ...string[]], cwd: string): Promise<Probe> {
  const [program, ...prefix] = interpreter;
  try {
    const { stdout } = await promisify(execFile)(program, [...prefix, '-c', PROBE], { cwd, timeout: PROBE_TIMEOUT_MS });
    return JSON.parse(stdout) as Probe;
  } catch (error) {
    const why = error instanceof Error ? error.message.trim().split('\n').at(-1) : String(error);
    throw new ServerError(
      `The interpreter ${interpreter.join(' ')} could not be started (${why}). Choose another one.`,
    );
  }
}

/**
 * The command line for an interpreter that was probed.
 *
 * @param extensionFolder holds `bundled/libs` once the extension is packaged
 * @throws ServerError when neither the environment nor the bundle can serve
 */
export function serverCommand(
  interpreter: readonly [string, ...string[]],
  found: Probe,
  strategy: ImportStrategy,
  extensionFolder: string,
): ServerCommand {
  const [command, ...prefix] = interpreter;
  if (found.inductoscope !== null && strategy === 'fromEnvironment') {
    const args = [...prefix, '-m', 'inductoscope', 'serve'];
    return { command, args, origin: 'environment', version: found.inductoscope };
  }
  const [major, minor] = found.python;
  if (major < OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor < OLDEST_PYTHON[1])) {
    throw new ServerError(
      `The interpreter ${interpreter.join(' ')} is Python ${major}.${minor}, and Inductoscope needs ` +
        `${OLDEST_PYTHON.join('.')} or newer. Choose another one.`,
    );
  }
  const libs = path.join(extensionFolder, 'bundled', 'libs');
  if (!fs.existsSync(path.join(libs, '__main__.py'))) {
    throw new ServerError(
      `The package inductoscope is not installed for ${interpreter.join(' ')}, and this build of the ` +
        'extension brings no copy. Run "pip install inductoscope" in that environment, or choose another interpreter.',
    );
  }
  // A folder with a __main__.py becomes the first entry of the module path; PYTHONPATH would reach the workers too.
  return { command, args: [...prefix, libs, 'serve'], origin: 'bundled', version: null };
}
