import type { Io } from './io.ts'

/**
 * Shows a long text in the pager of `$PAGER`, or in `less`. Prints it if the output is no terminal, if the pager is empty,
 * or if it cannot be started.
 */
export async function page(io: Io, text: string): Promise<void> {
  const pager = io.env.PAGER ?? 'less'
  if (!io.stdoutIsTerminal || !io.stdinIsTerminal || pager.trim() === '') return io.writeOut(text)
  // As git does: quit if it fits the screen, keep colours, leave the text on the screen.
  // Without a locale, `less` would show the guides' characters as <E2><80><A6>.
  const { LESS = 'FRX', LV = '-c', LESSCHARSET = 'utf-8' } = io.env
  const env = { ...io.env, LESS, LV, LESSCHARSET }
  const child = Bun.spawn(['sh', '-c', pager], { env, stdin: 'pipe', stdout: 'inherit', stderr: 'ignore' })
  try {
    await child.stdin.write(text)
    await child.stdin.end()
  } catch {
    // The reader quit before the end.
  }
  // The shell's codes for a program that is missing or cannot run.
  if ([126, 127].includes(await child.exited)) io.writeOut(text)
}
