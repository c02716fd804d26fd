import { expect, test } from 'bun:test'
import { render, Text } from 'ink'
import { PassThrough } from 'node:stream'
import { createColors } from 'picocolors'
import { ConsoleContext, type Console } from '../../../cli/console/console-context.ts'
import { useSecret } from '../../../cli/console/hooks/use-secret.ts'
import { createStore } from '../../../cli/console/store.ts'
import { createTheme } from '../../../cli/console/theme.ts'

test('a secret that was shown is covered again after 30 seconds', async () => {
  const clock = createStore(0)
  const shown: string[] = []
  let toggle = () => {}
  function Secret() {
    const secret = useSecret()
    toggle = secret.toggle
    shown.push(secret.maskUnlessShown('ph_live_secret'))
    return <Text>{shown.at(-1)}</Text>
  }
  // The hook uses nothing else of the console, and Ink little of a terminal.
  const console = { clock, theme: createTheme(createColors(false), true) } as Console
  const stdout = new PassThrough().resume() as unknown as NodeJS.WriteStream
  const ink = render(
    <ConsoleContext value={console}>
      <Secret />
    </ConsoleContext>,
    { stdout, interactive: false, patchConsole: false, exitOnCtrlC: false },
  )
  const at = async (ms: number) => {
    clock.set(() => ms)
    await ink.waitUntilRenderFlush()
    return shown.at(-1)
  }
  expect(await at(5000)).toBe('************')
  toggle()
  expect(await at(34_000)).toBe('ph_live_secret')
  expect(await at(35_000)).toBe('************')
  toggle()
  expect(await at(36_000)).toBe('ph_live_secret')
  toggle()
  expect(await at(37_000)).toBe('************')
  ink.unmount()
})
