import { Lines } from '../components/Lines.tsx'
import type { Screen, ScreenProps } from '../screen.ts'

export const otpScreen: Screen = { name: 'otp', title: 'OTP', commands: ['otpd otp list'], View: OtpView }

function OtpView({ width, height }: ScreenProps) {
  return <Lines lines={['', ' otpd otp list']} width={width} height={height} />
}
