import { Lines } from '../components/Lines.tsx'
import type { Screen, ScreenProps } from '../screen.ts'

export const overviewScreen: Screen = {
  name: 'overview',
  title: 'Overview',
  commands: ['otpd analytics'],
  View: OverviewView,
}

function OverviewView({ width, height }: ScreenProps) {
  return <Lines lines={['', ' otpd analytics']} width={width} height={height} />
}
