import { useState } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { errorLines, useConsole, type Dialog } from '../console-context.ts'

/**
 * Does what a dialog asks for, once at a time, and closes the dialog when it is done. A refusal is kept as lines to
 * show, anything else is a bug. What is on the screen is asked again afterwards.
 */
export function useAction<Args extends unknown[]>(dialog: Dialog, submit: (...args: Args) => Promise<void>) {
  const { shell, refresh, toast, crash } = useConsole()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string[]>([])
  // Whoever left meanwhile may have opened another one.
  const close = () =>
    shell.set((previous) => (previous.dialog === dialog ? { ...previous, dialog: null } : previous))
  async function execute(args: Args) {
    setBusy(true)
    setProblem([])
    try {
      await submit(...args)
      close()
      refresh()
    } catch (error) {
      if (!(error instanceof CliError)) return crash(error)
      if (shell.get().dialog === dialog) setProblem(errorLines(error))
      else toast(error.message, 'bad')
    } finally {
      setBusy(false)
    }
  }
  return {
    isBusy,
    problem,
    close,
    run(...args: Args) {
      if (!isBusy) void execute(args)
    },
  }
}
