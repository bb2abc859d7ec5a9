"""The room: a full-screen face of a session. Task, editor, output and the clock, all of it by keyboard.

`app` is the application; each screen is a module. `draft` knows how the room's text and the file on the disk relate.
Nothing slow happens in the thread that shows keys: the session's store and the engine each have one of their own
(`threads`).
"""
