// Takes docs/images/vscode.png, the picture in the README, of examples/gpt_block.py in a real VS Code:
//   make clients vsix && node tests/e2e/readme_picture.mjs .venv/bin/python
import path from 'node:path';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withWorkbench } from '../clients/vscode_drive.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const [python] = process.argv.slice(2);
const extension = path.join(root, 'vscode-extension');
const { version } = JSON.parse(fs.readFileSync(path.join(extension, 'package.json'), 'utf8'));
const file = path.join(root, 'examples', 'gpt_block.py');
const source = fs.readFileSync(file, 'utf8').split('\n');
const lineOf = (text) => source.findIndex((line) => line.includes(text)) + 1;
const BREAK = lineOf('if rms > self.spike');
const FUSED = lineOf('return x + self.mlp');

const options = {
  folder: path.dirname(file),
  extensions: [path.join(extension, `inductoscope-${version}.vsix`)],
  settings: {
    'inductoscope.interpreter': [path.resolve(python)],
    'inductoscope.device': 'sim:H200',
    'workbench.colorTheme': 'Default Dark Modern',
    'workbench.activityBar.location': 'hidden',
    'workbench.sideBar.location': 'right',
    'window.commandCenter': false,
    'workbench.layoutControl.enabled': false,
    'breadcrumbs.enabled': false,
    'editor.hover.above': false,
    'editor.occurrencesHighlight': 'off',
    'editor.renderLineHighlight': 'none',
    'editor.scrollbar.vertical': 'hidden',
    'editor.scrollbar.horizontal': 'hidden',
    'editor.overviewRulerBorder': false,
  },
  viewport: { width: 1080, height: 680 },
  scale: 2,
};

// Drags the lower edge of the hover, as a reader of a long kernel does.
async function makeHigher(wb, pixels) {
  const box = await wb.page.locator('.monaco-resizable-hover').first().boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height - 1];
  await wb.page.mouse.move(x, y);
  await wb.page.mouse.down();
  await wb.page.mouse.move(x, y + pixels, { steps: 5 });
  await wb.page.mouse.up();
  await wb.page.mouse.move(x, y - 60); // off the edge, which is blue under the pointer
}

await withWorkbench(options, async (wb) => {
  await wb.command('workbench.action.closeSidebar');
  await wb.openFile('gpt_block.py', { line: BREAK });
  await wb.waitForSquiggle({ severity: 'warning', line: BREAK }, { timeout: 300_000 });
  await wb.waitForCodeLens(/\d+ kernels/, { timeout: 300_000 });
  await wb.command('revealLine', { lineNumber: lineOf('self.mlp = '), at: 'top' });
  await wb.hover(FUSED, source[FUSED - 1].indexOf('self.mlp') + 1, { expect: '@triton.jit', keep: true });
  await wb.command('revealLine', { lineNumber: lineOf('self.mlp = '), at: 'top' });
  await makeHigher(wb, 165);
  await wb.screenshot(path.join(root, 'docs', 'images', 'vscode.png'));
  console.log((await wb.codeLenses()).flatMap((lens) => lens.titles).join(' | '));
});
