import { Lines } from '../components/Lines.tsx'
import type { Screen, ScreenProps } from '../screen.ts'

export const webhooksScreen: Screen = {
  name: 'webhooks',
  title: 'Webhooks',
  commands: ['otpd webhook list'],
  View: WebhooksView,
}

function WebhooksView({ width, height }: ScreenProps) {
  return <Lines lines={['', ' otpd webhook list']} width={width} height={height} />
}
