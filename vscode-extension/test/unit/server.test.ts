import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { probe, serverCommand, ServerError } from '../../src/server';
import { interpreterAt, temporaryFolder } from './support';

const PYTHON = ['/usr/bin/python3'] as const;

describe('serverCommand', () => {
  let extension: string;
  let libs: string;

  beforeEach(() => {
    extension = temporaryFolder();
    libs = path.join(extension, 'bundled', 'libs');
  });
  const bundle = () => {
    fs.mkdirSync(libs, { recursive: true });
    fs.writeFileSync(path.join(libs, '__main__.py'), '');
  };

  it('prefers the package of the environment', () => {
    bundle();
    const found = { python: [3, 12], inductoscope: '0.3.0' } as const;
    assert.deepEqual(serverCommand(['conda', 'run', 'python'], found, 'fromEnvironment', extension), {
      command: 'conda',
      args: ['run', 'python', '-m', 'inductoscope', 'serve'],
      origin: 'environment',
      version: '0.3.0',
    });
  });

  it('takes the bundled copy when it has to or is told to', () => {
    bundle();
    for (const [inductoscope, strategy] of [
      [null, 'fromEnvironment'],
      ['0.3.0', 'useBundled'],
    ] as const) {
      const command = serverCommand(PYTHON, { python: [3, 10], inductoscope }, strategy, extension);
      assert.deepEqual([command.args, command.origin], [[libs, 'serve'], 'bundled']);
    }
  });

  it('says what to do when there is no copy or Python is too old', () => {
    const without = { python: [3, 12], inductoscope: null } as const;
    assert.throws(() => serverCommand(PYTHON, without, 'fromEnvironment', extension), /pip install inductoscope/);
    bundle();
    const old = { python: [3, 9], inductoscope: null } as const;
    assert.throws(() => serverCommand(PYTHON, old, 'fromEnvironment', extension), /Python 3\.9, .* 3\.10 or newer/);
  });
});

describe('probe', () => {
  it('reads what the interpreter answers', async () => {
    const folder = temporaryFolder();
    const answer = { python: [3, 11], inductoscope: null };
    const python = interpreterAt(path.join(folder, 'python'), answer);
    assert.deepEqual(await probe([python], folder), answer);
  });

  it('asks a real interpreter, and does not let the folder shadow its modules', async () => {
    const folder = temporaryFolder();
    const { python } = await probe(['python3'], folder);
    assert.equal(python[0], 3);
  });

  it('turns a failure into a sentence', async () => {
    await assert.rejects(probe(['/nowhere/python'], '/'), (error) => {
      assert.ok(error instanceof ServerError);
      assert.match(error.message, /\/nowhere\/python could not be started \(.*ENOENT.*\)\. Choose another one\./);
      return true;
    });
  });
});
