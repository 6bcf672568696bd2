import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type * as vscode from 'vscode';
import { registerCommands, targetAt } from '../../src/commands';
import type { Status, TargetStatus } from '../../src/protocol';
import { recordingLog } from './support';
import * as fake from './vscode';

const MODEL = fake.Uri.file('/project/my model.py');

function target(name: string, line: number, uri = MODEL.toString()): TargetStatus {
  return { uri, name, line, state: 'checked', summary: `${name} compiled`, stale: false };
}

const TARGETS = [target('second', 20), target('first', 10), target('elsewhere', 1, 'file:///project/other.py')];

describe('targetAt', () => {
  const at = (line: number) => targetAt(TARGETS, MODEL as unknown as vscode.Uri, line)?.name;

  it('is the last target defined at or above the line, in that document', () => {
    assert.deepEqual([at(10), at(19), at(20), at(99)], ['first', 'first', 'second', 'second']);
  });

  it('is the first target above all of them, and nothing where there is none', () => {
    assert.equal(at(1), 'first');
    assert.equal(targetAt([], MODEL as unknown as vscode.Uri, 1), undefined);
  });

  it('compares documents, not spellings of their URIs', () => {
    const spelled = [
      target('same', 1, MODEL.toString().replace('%20', '%20').replace('file:///', 'file:///%70roject/../')),
    ];
    assert.equal(targetAt(spelled, MODEL as unknown as vscode.Uri, 1)?.name, 'same');
  });
});

describe('commands', () => {
  let restarts: number;
  let lines: string[];

  beforeEach(() => {
    fake.reset();
    restarts = 0;
  });
  const register = (status: Partial<Status> | undefined) => {
    const recording = recordingLog();
    lines = recording.lines;
    const command = { command: '/usr/bin/python3', args: ['-m', 'inductoscope', 'serve'], origin: 'environment' };
    registerCommands({
      extension: { packageJSON: { version: '0.1.0' } } as unknown as vscode.Extension<unknown>,
      client: { restart: () => (restarts += 1), command } as never,
      status: { status } as never,
      log: recording.log,
    });
  };
  const cursorAt = (line: number) => {
    fake.window.activeTextEditor = {
      document: { uri: MODEL },
      selection: { active: { line: line - 1, character: 0 } },
    };
  };
  const run = async (name: string) => {
    await fake.commands.executeCommand(name);
    return fake.state.executed.slice(1);
  };

  it('hands the file to the server', async () => {
    register(undefined);
    cursorAt(1);
    assert.deepEqual(await run('inductoscope.checkFile'), [
      { command: 'inductoscope.check', args: [{ uri: MODEL.toString() }] },
    ]);
  });

  it('hands the target at the cursor to the server', async () => {
    register({ targets: TARGETS });
    cursorAt(12);
    assert.deepEqual(await run('inductoscope.benchmarkTarget'), [
      { command: 'inductoscope.benchmark', args: [{ uri: MODEL.toString(), target: 'first' }] },
    ]);
  });

  it('says so when there is nothing to compile', async () => {
    register({ targets: [] });
    cursorAt(12);
    assert.deepEqual(await run('inductoscope.showTargetKernels'), []);
    assert.match(fake.state.messages[0] ?? '', /nothing to compile in this file/);
  });

  it('restarts and shows the log', async () => {
    register(undefined);
    await run('inductoscope.restartServer');
    await run('inductoscope.showLogs');
    assert.deepEqual([restarts, lines], [1, ['shown']]);
  });

  it('writes what a bug report needs', async () => {
    register({
      health: 'ok',
      quiescent: true,
      message: 'fine',
      torch: '2.13.0',
      triton: null,
      targets: [target('first', 10)],
    });
    fake.state.settings['inductoscope.device'] = 'cpu';
    await run('inductoscope.debugInformation');
    const text = fake.state.opened[0] ?? '';
    assert.match(text, /- Server: \/usr\/bin\/python3 -m inductoscope serve \(environment\)/);
    assert.match(text, /- torch: 2\.13\.0\n- Triton: unknown/);
    assert.match(text, /- first: checked, first compiled/);
    assert.match(text, /"device": "cpu"/);
  });
});
