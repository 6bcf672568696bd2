// Opens a folder that nobody trusts in a real VS Code: nothing of it may run. Run by test_workbench.py:
//   node restricted_workbench.mjs VSIX FOLDER PYTHON PICTURES
// PYTHON is the first one on PATH and has nothing installed, so the server comes from the extension.
// FOLDER holds model.py and an interpreter in .venv, and each leaves a file `ran` behind when it is started.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { withWorkbench } from '../clients/vscode_drive.mjs';

const [vsix, folder, python, pictures] = process.argv.slice(2);
const trace = path.join(folder, 'ran');

const options = {
  folder,
  extensions: [vsix],
  trust: 'none',
  env: { PATH: `${path.dirname(python)}:${process.env.PATH}` },
  logDir: pictures,
};

await withWorkbench(options, async (wb) => {
  await wb.openFile('model.py');
  const lens = await wb.waitForCodeLens(/not trusted/);
  assert.equal(lens.titles.length, 1);
  await wb.runFromPalette('Inductoscope: Show Debug Information');
  await wb.waitForTab(/^Untitled/);
  const facts = await wb.waitForActiveText('- Workspace: restricted');
  assert.ok(facts.includes(`- Server: ${python} `) && facts.includes('(bundled)'), facts);
  await wb.screenshot(path.join(pictures, 'restricted.png'));
  assert.equal(fs.existsSync(trace), false, 'something of the folder was run');
  console.log('ok - a restricted workspace is read and not run');
});
