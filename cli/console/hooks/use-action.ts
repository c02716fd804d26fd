import { useState } from 'react'
import { CliError } from '../../errors.ts'
import { errorLines, useConsole } from '../console-context.ts'

/**
 * Does something on the server, once at a time. A refusal is kept as lines to show, anything else is a bug. What is on
 * the screen is asked again when it is done.
 */
export function useAction<Args extends unknown[]>(act: (...args: Args) => Promise<void>, done: () => void) {
  const { refresh, crash } = useConsole()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string[]>([])
  async function carryOut(args: Args) {
    setBusy(true)
    setProblem([])
    try {
      await act(...args)
      done()
      refresh()
    } catch (error) {
      if (!(error instanceof CliError)) return crash(error)
      setProblem(errorLines(error))
    } finally {
      setBusy(false)
    }
  }
  return {
    isBusy,
    problem,
    run(...args: Args) {
      if (!isBusy) void carryOut(args)
    },
  }
}
