/** Types for the part of `smpp` 0.5.1 that we use; the package ships none. */
declare module 'smpp' {
  export type Pdu = {
    command: string
    command_status: number
    sequence_number: number
    /** Creates the response PDU; an error response if a non-zero status is given. */
    response(fields?: { command_status?: number; message_id?: string }): Pdu
    readonly [field: string]: unknown
  }

  export type PduFields = Readonly<Record<string, string | number | Uint8Array>>

  /** Sends a command; returns false, without writing anything, if the socket is not writable. */
  export type Command = (fields: PduFields, onResponse?: (response: Pdu) => void) => boolean

  export type Session = {
    /**
     * `error` must have a listener, or it crashes the process. Commands are events with the command's name.
     */
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
    /** Closes the connection after pending writes. */
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

  /** Server side, for the SMSC in tests. */
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
