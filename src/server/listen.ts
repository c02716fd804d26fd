import { StartRefused } from '../store/files/data-dir.ts'

/** @throws StartRefused where the address is taken or not ours */
export function orRefuse<T>(
  { host, port }: { host: string; port: number },
  setting: string,
  serve: () => T,
): T {
  try {
    return serve()
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
