"""Small programs whose kernels a simulated GPU must get right, one module a group.

Every public function of a group's module is one program: it makes its modules and inputs on "cuda" and says what to
call.  The same code runs on a real card and on a simulated one.
"""
