import { useState } from 'react'
import type { Screen, ScreenProps } from '../screen.ts'
import { OtpRequestDetail } from './OtpRequestDetail.tsx'
import { OtpRequests } from './OtpRequests.tsx'

/** Screen with the OTP requests and their status. */
export const otpScreen: Screen = {
  title: 'OTP',
  commands: [
    'otpd otp list --status pending',
    'otpd otp get REQUEST_ID',
    'otpd otp send PHONE --env-file FILE',
    'otpd otp verify REQUEST_ID CODE --env-file FILE',
  ],
  View: OtpView,
}

function OtpView(props: ScreenProps) {
  const [openId, setOpenId] = useState(props.target?.requestId ?? null)
  return openId === null ? (
    <OtpRequests {...props} open={setOpenId} />
  ) : (
    <OtpRequestDetail {...props} id={openId} close={() => setOpenId(null)} />
  )
}
