import { test } from 'bun:test'
import { Text } from 'ink'
import { useKeys } from '../../../cli/console/hooks/use-keys.ts'
import { useNow } from '../../../cli/console/hooks/use-now.ts'
import { useSecret } from '../../../cli/console/hooks/use-secret.ts'
import { renderConsole } from '../../helpers/console-render.tsx'

function Secret() {
  const { maskUnlessShown, toggle } = useSecret()
  const nowMs = useNow()
  useKeys('detail', { show: toggle })
  return <Text>{`${nowMs / 1000} s: ${maskUnlessShown('ph_live_secret')}`}</Text>
}

test('a secret that was shown is covered again after 30 seconds', async () => {
  let nowMs = 0
  const { console, waitForText, press, close } = renderConsole(<Secret />, { now: () => nowMs })
  const passUntil = (ms: number) => {
    nowMs = ms
    console.clock.set(() => ms)
  }
  passUntil(5000)
  await waitForText('5 s: ••••••••••••')
  press('v')
  await waitForText('5 s: ph_live_secret')
  passUntil(34_000)
  await waitForText('34 s: ph_live_secret')
  passUntil(35_000)
  await waitForText('35 s: ••••••••••••')
  press('v')
  await waitForText('35 s: ph_live_secret')
  press('v')
  await waitForText('35 s: ••••••••••••')
  passUntil(37_000)
  await waitForText('37 s: ••••••••••••')
  close()
})
