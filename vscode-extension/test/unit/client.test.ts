import assert from 'node:assert/strict';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type * as vscode from 'vscode';
import { Client } from '../../src/client';
import { StatusItem } from '../../src/status';
import { LanguageClient } from './languageclient';
import { interpreterAt, recordingLog, temporaryFolder } from './support';
import * as fake from './vscode';

const PATH = process.env.PATH;

describe('Client', () => {
  let root: string;
  let status: StatusItem;
  let client: Client;
  let lines: string[];

  beforeEach(() => {
    fake.reset();
    LanguageClient.forget();
    root = temporaryFolder();
    const extension = { extensionPath: root, packageJSON: { version: '0.1.0' } };
    const recording = recordingLog();
    lines = recording.lines;
    status = new StatusItem();
    client = new Client(extension as unknown as vscode.Extension<unknown>, recording.log, status);
    process.env.PATH = '';
  });
  afterEach(() => {
    process.env.PATH = PATH;
  });

  // The fake interpreters need `cat`, so PATH is left alone where one runs.
  const useInterpreter = (name: string, answer?: unknown) => {
    process.env.PATH = PATH;
    const file = interpreterAt(path.join(root, name), answer);
    fake.state.settings['inductoscope.interpreter'] = [file];
    return file;
  };
  const warnings = () => lines.filter((line) => line.startsWith('warn'));
  const only = () => {
    const [running, ...others] = LanguageClient.running();
    assert.ok(running && others.length === 0, 'exactly one server runs');
    return running;
  };

  it('starts the server of the interpreter, away from the user folder', async () => {
    const python = useInterpreter('python');
    await client.restart();
    const { executable, options } = only();
    assert.deepEqual([executable.command, executable.args], [python, ['-m', 'inductoscope', 'serve']]);
    assert.equal(executable.options.cwd, root);
    assert.deepEqual(options.initializationOptions(), { trusted: true, status: true });
    assert.equal(client.command?.origin, 'environment');
  });

  it('leaves one server when restarts overlap', async () => {
    useInterpreter('python');
    await Promise.all([client.restart(), client.restart(), client.restart()]);
    assert.equal(LanguageClient.made.length, 3);
    only();
  });

  it('tells a running server of changed settings, and starts another for another command line', async () => {
    useInterpreter('python');
    await client.restart();
    const first = only();
    await client.refresh();
    assert.equal(only(), first);
    assert.deepEqual(first.sent, ['workspace/didChangeConfiguration']);
    const other = useInterpreter('other');
    await client.refresh();
    assert.equal(only().executable.command, other);
  });

  it('says once what is wrong and what to do, until the user asks again', async () => {
    await client.restart();
    await client.refresh();
    assert.equal(fake.state.messages.length, 1);
    assert.match(fake.state.messages[0] ?? '', /^Inductoscope: No Python interpreter was found\. .* choose one\.$/);
    await client.restart();
    assert.equal(fake.state.messages.length, 2);
    assert.match(String(fake.state.statusItems[0]?.detail), /No Python interpreter/);
    assert.equal(client.command, undefined);
  });

  it('leads to the setting, or to the Python extension where that chooses', async () => {
    fake.state.answer = 'Choose Interpreter';
    await client.restart();
    await Promise.resolve();
    assert.deepEqual(fake.state.executed.at(-1), {
      command: 'workbench.action.openSettings',
      args: ['inductoscope.interpreter'],
    });
    const environments = {
      getActiveEnvironmentPath: () => ({ path: '' }),
      resolveEnvironment: () => Promise.resolve(undefined),
    };
    fake.state.extensions['ms-python.python'] = { activate: () => Promise.resolve({ environments }) };
    await client.restart();
    await new Promise(setImmediate);
    assert.equal(fake.state.executed.at(-1)?.command, 'python.setInterpreter');
  });

  it('reports a server that does not start, and recovers', async () => {
    useInterpreter('python');
    LanguageClient.failure = new Error('it broke');
    await client.restart();
    assert.deepEqual(fake.state.messages, ['Inductoscope: the language server did not start. it broke']);
    assert.deepEqual(LanguageClient.running(), []);
    LanguageClient.failure = undefined;
    await client.refresh();
    only();
  });

  it('shows a server that ended by itself, but not one that was replaced', async () => {
    useInterpreter('python');
    await client.restart();
    const first = only();
    await client.restart();
    first.end();
    assert.doesNotMatch(String(fake.state.statusItems[0]?.detail), /ended/);
    only().end();
    assert.match(String(fake.state.statusItems[0]?.detail), /server ended\. Restart it/);
  });

  it('passes on what the server says about itself, and stops it', async () => {
    useInterpreter('python');
    await client.restart();
    only().handlers.get('inductoscope/status')?.({ health: 'ok', quiescent: true, trusted: true, targets: [] });
    assert.equal(status.status?.health, 'ok');
    await client.stop();
    assert.deepEqual(LanguageClient.running(), []);
  });

  it('notes a server of another version, and only that', async () => {
    useInterpreter('python');
    await client.restart();
    assert.deepEqual(warnings(), []);
    LanguageClient.serverVersion = '0.0.9';
    await client.restart();
    assert.match(warnings()[0] ?? '', /server 0\.0\.9 and extension 0\.1\.0 differ/);
  });
});
