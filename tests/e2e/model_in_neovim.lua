-- Opens workspace/model.py in a real Neovim with the real server and checks what the user gets. Run by test_neovim.py.
--   INDUCTOSCOPE_PYTHON   interpreter that has inductoscope and torch
--   INDUCTOSCOPE_FOLDER   copy of workspace/
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
local drive = dofile(here .. '/../clients/nvim_drive.lua')
local python, folder = os.getenv('INDUCTOSCOPE_PYTHON'), os.getenv('INDUCTOSCOPE_FOLDER')
local RUN = 120000 -- ms: imports torch, compiles; a busy two-core machine is slow

local s = drive.start({
  name = 'inductoscope',
  cmd = { python, '-m', 'inductoscope', 'serve' },
  root = folder,
  settings = { inductoscope = { interpreter = { python }, device = 'cpu', rung = 'lower' } },
  timeout = 20000,
})

-- The 1-based line of the model that holds some text.
local function line_of(text)
  for n, l in ipairs(vim.api.nvim_buf_get_lines(s.buf, 0, -1, false)) do
    if l:find(text, 1, true) then return n end
  end
  error('no line with ' .. text)
end

-- Without these two nothing below can hold, and each wait would last to its end.
local function must(name, check)
  if not drive.test(name, check) then drive.finish() end
end

must('the server starts and attaches', function() s:open('model.py') end)

must('the graph break is shown on the line that prints, with its GB number', function()
  local found = s:wait_diagnostics(1, RUN)
  local breaks = vim.tbl_filter(function(d) return d.code == 'graph-break' end, found)
  drive.eq(#breaks, 1, 'graph breaks: ' .. vim.inspect(found))
  drive.eq({ breaks[1].line, breaks[1].severity, breaks[1].source }, { line_of('print('), 'warning', 'inductoscope' })
  drive.has(breaks[1].message, 'GB0059')
  drive.has(table.concat(vim.tbl_map(function(u) return tostring(u.line) end, s:underlines()), ' '), tostring(breaks[1].line))
end)

drive.test('the check comes to its end', function()
  local answer = s:request('inductoscope/sync', { uri = s:uri() }, RUN)
  drive.eq(answer.targets, { { name = 'Model.forward', status = 'partial' } })
end)

drive.test('the hover on a fused line holds the kernel that it went into', function()
  local card = s:hover_raw(line_of('torch.softmax'), 16)
  drive.has(card, '```cpp')
  drive.has(card, 'extern "C"')
  drive.has(s:hover(line_of('torch.softmax'), 16), 'Kernel')
end)

drive.test('the hover on the break says what to do', function()
  drive.has(s:hover(line_of('print('), 6), 'print')
end)

drive.test('the lens sums the target up', function()
  local lens = s:code_lenses()[1]
  drive.eq(lens.line, line_of('def forward'))
  drive.has(lens.title, '2 graphs')
  drive.has(lens.title, '1 break')
end)

drive.test('removing the print mends it', function()
  s:set_line(line_of('print('), '    pass')
  vim.cmd('silent write')
  s:wait_diagnostics(0, RUN)
  local answer = s:request('inductoscope/sync', { uri = s:uri() }, RUN)
  drive.eq(answer.targets, { { name = 'Model.forward', status = 'compiled' } })
  -- The client shows its old lenses until it has asked again.
  drive.wait('the new lens', function() return s:code_lenses()[1].title:find('1 graph,', 1, true) end)
end)

drive.test('the server ends in order', function() drive.eq(s:stop(), { code = 0, signal = 0 }) end)

drive.finish()
