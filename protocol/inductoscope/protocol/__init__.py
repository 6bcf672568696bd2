"""The vocabulary that the server and the worker share.

Standard library only: the worker imports this package in the user's interpreter.
"""
