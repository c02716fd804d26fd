import { StartRefused } from '../store/data-dir/data-dir.ts'
import { isRecord } from '../shared/json.ts'

/**
 * Binds a listener and turns a failure into an error that names the address and the setting.
 *
 * @throws StartRefused when the address is in use or cannot be bound
 */
export function bindOrExplain<T>(
  { host, port }: { host: string; port: number },
  setting: string,
  bind: () => T,
): T {
  try {
    return bind()
  } catch (error) {
    const { reason, remedy } = explain(isRecord(error) ? error['code'] : undefined, port, setting)
    throw new StartRefused(`cannot listen on ${host}:${port}${reason}`, remedy, error)
  }
}

function explain(code: unknown, port: number, setting: string): { reason: string; remedy: string } {
  switch (code) {
    case 'EADDRINUSE':
      return {
        reason: ': the address is already in use',
        remedy: `Choose another address with ${setting}, or stop the program that uses this one.`,
      }
    case 'EADDRNOTAVAIL':
      return {
        reason: ': no interface of this machine has this address',
        remedy: `Choose an address of this machine with ${setting}, or 0.0.0.0 for all of them.`,
      }
    case 'EACCES':
      return {
        reason: `: port ${port} needs a right that this user does not have`,
        remedy: `With systemd, give the unit CAP_NET_BIND_SERVICE (otpd docs tls: Ports below 1024); otherwise choose a port from 1024 on with ${setting}.`,
      }
    default:
      return { reason: '', remedy: `Choose another address with ${setting}.` }
  }
}
