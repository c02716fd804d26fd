import { Lines } from '../components/Lines.tsx'
import type { Screen, ScreenProps } from '../screen.ts'

export const appsScreen: Screen = { name: 'apps', title: 'Apps', commands: ['otpd app list'], View: AppsView }

function AppsView({ width, height }: ScreenProps) {
  return <Lines lines={['', ' otpd app list']} width={width} height={height} />
}
