"""The room: a session on the full screen. Task, editor, output and clock, all with the keyboard.

`app` is the application; each screen is a module. `draft` compares the room's text with the file on the disk.
Nothing slow runs in the thread that handles keys: the session's store and the engine each have their own thread
(`threads`).
"""
