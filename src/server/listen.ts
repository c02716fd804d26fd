import { StartRefused } from '../store/files/data-dir.ts'
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
    throw new StartRefused(
      `cannot listen on ${host}:${port}${isAddressInUse(error) ? ': the address is already in use' : ''}`,
      `Choose another address with ${setting}, or stop the program that uses this one.`,
      error,
    )
  }
}

const isAddressInUse = (error: unknown) => isRecord(error) && error['code'] === 'EADDRINUSE'
