import { Lines } from '../components/Lines.tsx'
import type { Screen, ScreenProps } from '../screen.ts'

export const logsScreen: Screen = {
  name: 'logs',
  title: 'Logs',
  commands: ['otpd logs --tail'],
  View: LogsView,
}

function LogsView({ width, height }: ScreenProps) {
  return <Lines lines={['', ' otpd logs --tail']} width={width} height={height} />
}
