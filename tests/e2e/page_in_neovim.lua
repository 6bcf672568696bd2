-- Runs the configuration that docs/editors.md gives to Neovim users, and uses what it promises. Run by test_neovim.py.
--   INDUCTOSCOPE_PAGE     a file with that configuration
--   INDUCTOSCOPE_PYTHON   interpreter that has inductoscope and torch
--   INDUCTOSCOPE_FOLDER   copy of workspace/
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
local drive = dofile(here .. '/../clients/nvim_drive.lua')
local python, folder = os.getenv('INDUCTOSCOPE_PYTHON'), os.getenv('INDUCTOSCOPE_FOLDER')
local RUN = 120000 -- ms: imports torch, compiles; a busy two-core machine is slow

vim.cmd('filetype plugin indent on')
vim.o.swapfile = false
dofile(os.getenv('INDUCTOSCOPE_PAGE'))
-- What only a test knows: where the interpreter is, and that it has to be quick.
vim.lsp.config('inductoscope', {
  cmd = { python, '-m', 'inductoscope', 'serve' },
  settings = { inductoscope = { interpreter = { python }, device = 'cpu', rung = 'lower', inlayHints = { 'shapes', 'kernels' } } },
})

local function client() return vim.lsp.get_clients({ name = 'inductoscope' })[1] end

local function ask(method, params)
  local answer = client():request_sync(method, params, RUN)
  assert(answer and not answer.err, method .. ': ' .. vim.inspect(answer))
  return answer.result
end

local model

local function must(name, check)
  if not drive.test(name, check) then drive.finish() end
end

must('opening a model starts the server and a check', function()
  vim.cmd('edit ' .. folder .. '/model.py')
  model = vim.api.nvim_get_current_buf()
  drive.wait('the server', function() return client() and client().initialized end, 60000)
  local uri = vim.uri_from_bufnr(model)
  drive.eq(ask('inductoscope/sync', { uri = uri }).targets[1].status, 'partial')
  drive.wait('the diagnostics', function() return #vim.diagnostic.get(model) > 0 end, 10000)
end)

drive.test('lenses show up and can be run', function()
  vim.lsp.codelens.refresh({ bufnr = model })
  drive.wait('the lenses with their titles', function()
    return vim.tbl_contains(vim.tbl_map(function(lens)
      return lens.command and lens.command.title or ''
    end, vim.lsp.codelens.get(model)), 'Kernels')
  end, 10000)
end)

drive.test('inlay hints are on', function()
  drive.eq(vim.lsp.inlay_hint.is_enabled({ bufnr = model }), true)
  drive.wait('the hints', function() return #vim.lsp.inlay_hint.get({ bufnr = model }) > 0 end, 10000)
end)

local kernel

drive.test('a kernel opens as a document with its language', function()
  local explored = ask('inductoscope/explore', { uri = vim.uri_from_bufnr(model) })
  local found = vim.tbl_filter(function(one) return one.language == 'cpp' end, explored.targets[1].documents)
  kernel = found[1].uri
  vim.cmd('edit ' .. vim.fn.fnameescape(kernel))
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  drive.has(text, 'extern "C"')
  drive.eq({ vim.bo.filetype, vim.bo.modifiable, vim.bo.modified }, { 'cpp', false, false })
end)

drive.test('a definition in it leads back to the model', function()
  local lines = ask('inductoscope/lines', { uri = kernel })
  local at = tonumber(vim.tbl_keys(lines.model)[1])
  local found = ask('textDocument/definition', {
    textDocument = { uri = vim.uri_from_bufnr(0) },
    position = { line = at - 1, character = 0 },
  })
  drive.eq(found[1].uri, vim.uri_from_bufnr(model))
end)

drive.test('its symbols are those of the kernel', function()
  local found = ask('textDocument/documentSymbol', { textDocument = { uri = vim.uri_from_bufnr(0) } })
  drive.eq(#found > 0, true, 'symbols')
end)

drive.finish()
