import { CliError, exitCodes, type ExitCode } from './errors.ts'
import type { Io } from './io.ts'

/**
 * Runs `body` until Ctrl+C or SIGTERM aborts its signal. Waits for the body to return, then resolves with the exit
 * code of that signal, or 0 if there was none.
 */
export async function runUntilInterrupted(
  io: Io,
  body: (signal: AbortSignal) => Promise<void>,
): Promise<ExitCode> {
  const controller = new AbortController()
  let exitCode: ExitCode = exitCodes.done
  const stopListening = io.onInterrupt?.((name) => {
    exitCode = name === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated
    controller.abort()
  })
  try {
    await body(controller.signal)
  } finally {
    stopListening?.()
  }
  return exitCode
}

/**
 * Runs `body`, which waits for a person, and returns its result.
 *
 * @throws CliError CANCELED when Ctrl+C or SIGTERM aborts the signal
 */
export async function runUnlessInterrupted<T>(io: Io, body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const interruption = Promise.withResolvers<never>()
  const stopListening = io.onInterrupt?.((name) => {
    const exitCode = name === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated
    interruption.reject(new CliError(exitCode, 'CANCELED', 'Canceled; nothing was changed.'))
    controller.abort()
  })
  try {
    return await Promise.race([body(controller.signal), interruption.promise])
  } finally {
    stopListening?.()
  }
}

/** Resolves once the signal is aborted. */
export const whenAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
