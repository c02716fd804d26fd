/** A stored attempt counts as failed. `seq` distinguishes attempts in the same millisecond. */
export type LoginAttempt = { at: number; seq: number }

export type LoginAttemptStore = {
  /** Lists the attempts of a subject since a time, oldest first. */
  list(subject: string, since: number): Promise<LoginAttempt[]>
  insert(subject: string, attempt: LoginAttempt): Promise<void>
  delete(subject: string, attempt: LoginAttempt): Promise<void>
  /** Deletes the attempts of all subjects up to a time. */
  deleteBefore(time: number): Promise<void>
}
