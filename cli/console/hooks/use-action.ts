import { useState } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { errorLines, useConsole, type Dialog } from '../console-context.ts'

/**
 * Runs the action of a dialog, one at a time. On success it closes the dialog and refreshes the screen. A `CliError` is
 * returned as `problem` lines; any other error is a bug and ends the console.
 *
 * @param onRefused called with a `CliError` while the dialog is still open
 */
export function useAction<Args extends unknown[]>(
  dialog: Dialog,
  submit: (...args: Args) => Promise<void>,
  onRefused: (error: CliError) => void = () => {},
) {
  const { shell, refresh, toast, crash } = useConsole()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string[]>([])
  // The user may have left this dialog and opened another one.
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
      if (shell.get().dialog !== dialog) return toast(error.message, 'bad')
      setProblem(errorLines(error))
      onRefused(error)
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
