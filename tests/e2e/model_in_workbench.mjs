// Opens workspace/model.py in a real VS Code with the packaged extension and checks what the user sees. Run by
// test_workbench.py:
//   node model_in_workbench.mjs VSIX FOLDER PYTHON PICTURES
// PYTHON has torch; PICTURES gets screenshots and, on failure, all logs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { withWorkbench } from '../clients/vscode_drive.mjs';

const [vsix, folder, python, pictures] = process.argv.slice(2);
const RUN = 120_000; // ms: imports torch, compiles; a busy two-core machine is slow
const source = fs.readFileSync(path.join(folder, 'model.py'), 'utf8').split('\n');
const lineOf = (text) => source.findIndex((line) => line.includes(text)) + 1;
const passed = (what) => console.log(`ok - ${what}`);

const options = {
  folder,
  extensions: [vsix],
  settings: {
    'inductoscope.interpreter': [python],
    'inductoscope.importStrategy': 'useBundled', // what is shipped, not what lies around
    'inductoscope.device': 'cpu',
    'inductoscope.rung': 'lower',
    'workbench.colorTheme': 'Default Dark Modern',
  },
  viewport: { width: 1280, height: 760 },
  logDir: pictures,
};

await withWorkbench(options, async (wb) => {
  await wb.openFile('model.py');
  const squiggle = await wb.waitForSquiggle({ severity: 'warning', line: lineOf('print(') }, { timeout: RUN });
  assert.match(squiggle.text, /^print\(/);
  const [problem] = await wb.problems();
  assert.equal(problem.source, 'inductoscope');
  assert.match(problem.message, /GB0059/);
  passed('the graph break is underlined on the line that prints');

  const lens = await wb.waitForCodeLens(/\d+ kernels?/, { line: lineOf('def forward'), timeout: RUN });
  assert.match(lens.titles[0], /2 graphs.*1 break/);
  passed(`the lens sums the target up: ${lens.titles.join(' | ')}`);

  const hover = await wb.hover(lineOf('torch.softmax'), 22, { expect: /extern "C"/, keep: true });
  await wb.screenshot(path.join(pictures, 'hover.png'));
  passed('the hover shows the kernel');

  await wb.runFromPalette('Inductoscope: Show Kernels');
  const report = await wb.webview(/extern "C"/);
  assert.match(await report.locator('body').innerText(), /Model\.forward[\s\S]*Graph breaks[\s\S]*Kernels/);
  await wb.screenshot(path.join(pictures, 'report.png'));
  await wb.command('workbench.action.closeEditorsInOtherGroups');
  passed('the kernels are shown beside the program');

  await wb.openFile('model.py');
  await wb.runFromPalette('Inductoscope: Show Debug Information');
  await wb.waitForTab(/^Untitled/);
  await wb.waitForActiveText(/- torch: 2\.\d+[\s\S]*- Model\.forward: checked/);
  passed('debug information names torch and the target');

  await wb.openFile('model.py');
  await wb.runFromPalette('Inductoscope: Restart Server');
  await wb.waitForNoSquiggle({ line: lineOf('print(') });
  await wb.waitForSquiggle({ severity: 'warning', line: lineOf('print(') }, { timeout: RUN });
  passed('a restarted server finds the same again');
});
