/** State that the cases pass on to later cases. */
export type CommandContext = {
  /** Name that is unique to one run. */
  project: string
  requestId: string
  messageId: string
  sessionId: string
  webhookId: string
  deliveryId: string
  receiverUrl: string
  /** Sends a code from a `test` application, and returns the request id. */
  send: (phone: string) => Promise<string>
  /** Waits until an event has reached the receiver, and returns the delivery id. */
  waitForDelivery: (webhookId: string) => Promise<string>
  writeDelivery: () => void
  addProject: (name: string) => Promise<string>
  /** Enables TOTP for the account. @returns a recovery code */
  enableTotp: () => Promise<string>
}

export type CommandCase = {
  args: string[]
  /** Piped standard input. */
  input?: string
  /** Standard output: all of it if this is a string. */
  stdout?: RegExp | string
  stderr?: RegExp | string
  exitCode?: number
  /** Differences with a terminal as standard output. */
  onTerminal?: { stdout?: RegExp; stderr?: RegExp; exitCode?: number }
  /**
   * Output with --json: the API's body byte for byte (the default), the program's own JSON, or the same as without
   * --json.
   */
  json?: 'own' | 'same'
  /** Shows its progress: with --json an object for each step, on standard error. */
  hasSteps?: true
  /** Lines may be wider than 80 columns, because they are there to be copied or piped. */
  isWide?: true
  /** Runs until Ctrl-C, which is sent once it reads a stream. */
  isEndless?: true
  /** Stores the id from the output in the context. */
  savesAs?: 'requestId' | 'messageId' | 'sessionId' | 'webhookId'
}
