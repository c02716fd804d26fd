/** What we use of `smpp` 0.5.1, which brings no types. */
declare module 'smpp' {
  export type Pdu = {
    command: string
    command_status: number
    sequence_number: number
    /** The answer to it; an error where a status is given. */
    response(fields?: { command_status?: number; message_id?: string }): Pdu
    readonly [field: string]: unknown
  }

  export type PduFields = Readonly<Record<string, string | number | Uint8Array>>

  /** Each command is false where the socket takes nothing more; then nothing was written. */
  export type Command = (fields: PduFields, onResponse?: (response: Pdu) => void) => boolean

  export type Session = {
    /** `error` must have a listener, or it ends the process. Commands are events by their names. */
    on(event: 'close', listener: () => void): unknown
    on(event: 'error', listener: (error: Error & { code?: string }) => void): unknown
    on(
      event: 'deliver_sm' | 'data_sm' | 'enquire_link' | 'unbind' | 'unknown',
      listener: (pdu: Pdu) => void,
    ): unknown
    send(pdu: Pdu): boolean
    bind_transceiver: Command
    bind_transmitter: Command
    submit_sm: Command
    enquire_link: Command
    unbind: Command
    /** Ends the connection when all is written. */
    close(): void
    destroy(): void
  }

  type ConnectOptions = {
    host: string
    port: number
    tls: boolean
    rejectUnauthorized: true
    servername?: string
    ca?: string
  }

  /** What tests build an SMSC of. */
  export type Server = {
    on(event: 'session', listener: (session: ServerSession) => void): unknown
    on(event: 'error', listener: (error: Error) => void): unknown
    listen(port: number, host: string, onListening: () => void): unknown
    address(): { port: number } | string | null
    close(): void
  }

  export type ServerSession = {
    on(event: 'close' | 'error', listener: () => void): unknown
    on(event: string, listener: (pdu: Pdu) => void): unknown
    send(pdu: Pdu): boolean
    deliver_sm: Command
    enquire_link: Command
    unbind: Command
    destroy(): void
    socket: { write(bytes: Uint8Array): unknown }
  }

  type Field = { filter?: unknown }

  const smpp: {
    connect(options: ConnectOptions, onConnect: () => void): Session
    createServer(options: { key?: string; cert?: string }): Server
    commands: { deliver_sm: { params: { short_message: Field } } }
    tlvs: { message_payload: Field }
  }
  export default smpp
}
