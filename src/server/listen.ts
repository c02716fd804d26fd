import { StartRefused } from '../store/files/data-dir.ts'

/** @throws StartRefused where the address is taken or not ours */
export function bindOrExplain<T>(
  { host, port }: { host: string; port: number },
  setting: string,
  bind: () => T,
): T {
  try {
    return bind()
  } catch (error) {
    throw new StartRefused(
      `cannot listen on ${host}:${port}${isAddressInUse(error) ? ': another program does' : ''}`,
      `Choose another address with ${setting}, or stop the other program.`,
      error,
    )
  }
}

const isAddressInUse = (error: unknown) =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'EADDRINUSE'
