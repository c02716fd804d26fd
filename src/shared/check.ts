/**
 * Result of one check of `otpd doctor`, and of those that alerts are sent for. `warning`: it works, but there is or will be
 * a problem.
 */
export type Check = {
  name: string
  status: 'ok' | 'warning' | 'fault'
  /** The cause, one sentence or less. */
  message: string
  /** One command or setting that helps; null if nothing has to be done. */
  remedy: string | null
}

export const ok = (name: string, message: string): Check => ({ name, status: 'ok', message, remedy: null })

export const warning = (name: string, message: string, remedy: string): Check => ({
  name,
  status: 'warning',
  message,
  remedy,
})

export const fault = (name: string, message: string, remedy: string): Check => ({
  name,
  status: 'fault',
  message,
  remedy,
})
