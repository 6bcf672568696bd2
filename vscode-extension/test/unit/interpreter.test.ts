import assert from 'node:assert/strict';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { WorkspaceFolder } from 'vscode';
import { expandVariables, findInterpreter, InterpreterError } from '../../src/interpreter';
import { interpreterAt, temporaryFolder } from './support';
import * as fake from './vscode';

const PATH = process.env.PATH;

describe('findInterpreter', () => {
  let root: string;
  let folder: WorkspaceFolder;
  let onPath: string;

  beforeEach(() => {
    fake.reset();
    root = temporaryFolder();
    const made = fake.folder(path.join(root, 'project'));
    fake.workspace.workspaceFolders = [made];
    folder = made as unknown as WorkspaceFolder;
    onPath = interpreterAt(path.join(root, 'bin', 'python3'));
    process.env.PATH = path.join(root, 'bin');
  });
  afterEach(() => {
    process.env.PATH = PATH;
  });

  const pythonExtensionWith = (executable: string) => {
    const environments = {
      getActiveEnvironmentPath: () => ({ path: executable }),
      resolveEnvironment: () => Promise.resolve({ executable: { uri: fake.Uri.file(executable) } }),
    };
    fake.state.extensions['ms-python.python'] = { activate: () => Promise.resolve({ environments }) };
  };
  const virtualEnvironment = () => interpreterAt(path.join(root, 'project', '.venv', 'bin', 'python'));

  it('takes the setting before anything else', async () => {
    virtualEnvironment();
    const chosen = interpreterAt(path.join(root, 'mine', 'python'));
    fake.state.settings['inductoscope.interpreter'] = [chosen, '-X', 'dev'];
    assert.deepEqual(await findInterpreter(folder), { command: [chosen, '-X', 'dev'], source: 'setting' });
  });

  it('reads a relative path from the folder and a bare name from PATH', async () => {
    const inside = virtualEnvironment();
    fake.state.settings['inductoscope.interpreter'] = ['.venv/bin/python'];
    assert.deepEqual((await findInterpreter(folder))?.command, [inside]);
    fake.state.settings['inductoscope.interpreter'] = ['python3'];
    assert.deepEqual((await findInterpreter(folder))?.command, [onPath]);
  });

  it('says so when the setting names nothing, rather than taking another interpreter', async () => {
    fake.state.settings['inductoscope.interpreter'] = ['/nowhere/python'];
    await assert.rejects(findInterpreter(folder), (error) => {
      assert.ok(error instanceof InterpreterError);
      assert.match(error.message, /\/nowhere\/python, which is not an executable file\. Correct the setting/);
      return true;
    });
  });

  it('asks the Python extension before it looks for an environment in the folder', async () => {
    virtualEnvironment();
    const chosen = interpreterAt(path.join(root, 'conda', 'python'));
    pythonExtensionWith(chosen);
    assert.deepEqual(await findInterpreter(folder), { command: [chosen], source: 'python-extension' });
  });

  it('goes on without the Python extension when that fails to start', async () => {
    fake.state.extensions['ms-python.python'] = { activate: () => Promise.reject(new Error('broken')) };
    assert.equal((await findInterpreter(folder))?.source, 'path');
  });

  it('finds .venv, then PATH, then nothing', async () => {
    assert.deepEqual(await findInterpreter(folder), { command: [onPath], source: 'path' });
    const inside = virtualEnvironment();
    assert.deepEqual(await findInterpreter(folder), { command: [inside], source: 'virtual-environment' });
    process.env.PATH = 'relative:.';
    assert.equal(await findInterpreter(undefined), undefined);
  });

  it('never starts what an untrusted workspace brought', async () => {
    fake.workspace.isTrusted = false;
    pythonExtensionWith(virtualEnvironment());
    assert.deepEqual(await findInterpreter(folder), { command: [onPath], source: 'path' });
  });
});

describe('expandVariables', () => {
  it('replaces the folder, the home and the environment', () => {
    const folder = fake.folder('/project') as unknown as WorkspaceFolder;
    process.env.INDUCTOSCOPE_TEST = 'value';
    assert.equal(expandVariables('${workspaceFolder}/${env:INDUCTOSCOPE_TEST}', folder), '/project/value');
    assert.equal(expandVariables('${env:INDUCTOSCOPE_NOT_SET}python', folder), 'python');
    assert.equal(expandVariables('~/bin', undefined), expandVariables('${userHome}/bin', undefined));
    assert.equal(expandVariables('a~b', undefined), 'a~b');
  });
});
