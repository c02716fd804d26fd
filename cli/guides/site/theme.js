// Runs before the page is drawn, so that it never flashes in the other theme.
const theme = localStorage.getItem('otpd-theme')
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
if (matchMedia('(max-width: 60rem)').matches)
  document.addEventListener('DOMContentLoaded', () =>
    document.querySelector('#menu')?.removeAttribute('open'),
  )
