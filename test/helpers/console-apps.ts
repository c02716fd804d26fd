import { readFileSync } from 'node:fs'
import type { ConsoleHost } from './console.ts'
import { lastCopiedText, type OpenScreen, type Size } from './screen.ts'

/** Helpers that open the Apps screen. */
export const createAppsScreen = (host: () => ConsoleHost) => {
  async function openApps(args: string[] = [], size?: Size) {
    const terminal = await host().open(args, size)
    terminal.press('2')
    await terminal.waitForText('[2 Apps]')
    return terminal
  }

  /** Opens the applications of the first project. */
  async function openProject(args: string[] = [], size?: Size) {
    const terminal = await openApps(args, size)
    await terminal.waitForText('▸ All applications')
    terminal.press('j', 'enter')
    await terminal.waitForText('Apps › ')
    return terminal
  }

  /** Opens the page of an application in the first project. */
  async function openApp(name: string, args: string[] = [], size?: Size) {
    const terminal = await openProject(args, size)
    await terminal.waitForText(name)
    terminal.press('/', name, 'enter', 'enter')
    await terminal.waitForText('[Credentials]')
    return terminal
  }

  /** Sends a code with the credentials of an env file. */
  const sendOtp = (credentials: Record<string, string>) =>
    fetch(`${host().server.url}/v1/otp/send`, {
      method: 'POST',
      headers: {
        'x-client-id': credentials.OTPD_CLIENT_ID ?? '',
        'x-client-secret': credentials.OTPD_CLIENT_SECRET ?? '',
        'x-api-key': credentials.OTPD_API_KEY ?? '',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ phone: '+14155550100' }),
    })

  return { openApps, openProject, openApp, sendOtp }
}

export const readEnvFile = (path: string): Record<string, string> =>
  Object.fromEntries(
    [...readFileSync(path, 'utf8').matchAll(/^(OTPD_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )

/** Copies the selected value, and returns the text that the console sent to the clipboard. */
export async function copyValue(terminal: OpenScreen, name: string) {
  terminal.press('y')
  await terminal.waitForText(`copied ${name}`)
  return lastCopiedText(terminal.written())
}
