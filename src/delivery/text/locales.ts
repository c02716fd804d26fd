/** Texts per plural category (CLDR); `other` is used for categories that are not listed. */
type PluralTexts = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }

/**
 * A message is `withName`, or `withoutName` if the application has no usable name, followed by `expiry`, or
 * by `closing` if the expiry is left out.
 */
export type LocaleTexts = { withName: string; withoutName: string; expiry: PluralTexts; closing: string }

/**
 * Built-in message texts by locale. Two rules shape the wording. With a name of 20 characters and the
 * minutes, a text fits one SMS part, which leaves 44 characters for everything else in languages that need
 * UCS-2. And the name never needs a grammatical ending. Right-to-left texts have a letter of their own script
 * first, or at least before the name, so that phones lay the line out right to left (UAX #9, rule P2). Digits
 * are always ASCII, so that phones detect the code.
 */
export const localeTexts: Readonly<Record<string, LocaleTexts>> = {
  en: {
    withName: '{code} is your {app} verification code',
    withoutName: '{code} is your verification code',
    expiry: { one: '. It expires in {minutes} minute.', other: '. It expires in {minutes} minutes.' },
    closing: '.',
  },
  es: {
    withName: '{code} es tu código de {app}',
    withoutName: '{code} es tu código de verificación',
    expiry: { one: '. Expira en {minutes} minuto.', other: '. Expira en {minutes} minutos.' },
    closing: '.',
  },
  pt: {
    withName: '{app}: o seu código é {code}',
    withoutName: 'O seu código de verificação é {code}',
    expiry: { one: '. Expira em {minutes} minuto.', other: '. Expira em {minutes} minutos.' },
    closing: '.',
  },
  'pt-BR': {
    withName: '{app}: seu código é {code}',
    withoutName: 'Seu código de verificação é {code}',
    expiry: { one: '. Expira em {minutes} minuto.', other: '. Expira em {minutes} minutos.' },
    closing: '.',
  },
  fr: {
    withName: '{code} est votre code de vérification {app}',
    withoutName: '{code} est votre code de vérification',
    expiry: { one: '. Il expire dans {minutes} minute.', other: '. Il expire dans {minutes} minutes.' },
    closing: '.',
  },
  de: {
    withName: '{code} ist Ihr Bestätigungscode für {app}',
    withoutName: '{code} ist Ihr Bestätigungscode',
    expiry: { one: '. Er ist {minutes} Minute gültig.', other: '. Er ist {minutes} Minuten gültig.' },
    closing: '.',
  },
  it: {
    withName: '{code} è il tuo codice di verifica {app}',
    withoutName: '{code} è il tuo codice di verifica',
    expiry: { one: '. Scade tra {minutes} minuto.', other: '. Scade tra {minutes} minuti.' },
    closing: '.',
  },
  nl: {
    withName: '{code} is je verificatiecode voor {app}',
    withoutName: '{code} is je verificatiecode',
    expiry: {
      one: '. Deze verloopt over {minutes} minuut.',
      other: '. Deze verloopt over {minutes} minuten.',
    },
    closing: '.',
  },
  sv: {
    withName: '{code} är din verifieringskod för {app}',
    withoutName: '{code} är din verifieringskod',
    expiry: { one: '. Den gäller i {minutes} minut.', other: '. Den gäller i {minutes} minuter.' },
    closing: '.',
  },
  da: {
    withName: '{code} er din bekræftelseskode til {app}',
    withoutName: '{code} er din bekræftelseskode',
    expiry: { one: '. Den udløber om {minutes} minut.', other: '. Den udløber om {minutes} minutter.' },
    closing: '.',
  },
  nb: {
    withName: '{code} er bekreftelseskoden din for {app}',
    withoutName: '{code} er bekreftelseskoden din',
    expiry: { one: '. Den utløper om {minutes} minutt.', other: '. Den utløper om {minutes} minutter.' },
    closing: '.',
  },
  fi: {
    withName: '{app}: vahvistuskoodisi on {code}',
    withoutName: 'Vahvistuskoodisi on {code}',
    expiry: { other: '. Se vanhenee {minutes} minuutin kuluttua.' },
    closing: '.',
  },
  pl: {
    withName: '{code} to Twój kod {app}',
    withoutName: '{code} to Twój kod weryfikacyjny',
    expiry: {
      one: '. Ważny przez {minutes} minutę.',
      few: '. Ważny przez {minutes} minuty.',
      other: '. Ważny przez {minutes} minut.',
    },
    closing: '.',
  },
  cs: {
    withName: '{code} je váš ověřovací kód {app}',
    withoutName: '{code} je váš ověřovací kód',
    expiry: {
      one: '. Platí {minutes} minutu.',
      few: '. Platí {minutes} minuty.',
      other: '. Platí {minutes} minut.',
    },
    closing: '.',
  },
  sk: {
    withName: '{code} je váš overovací kód {app}',
    withoutName: '{code} je váš overovací kód',
    expiry: {
      one: '. Platí {minutes} minútu.',
      few: '. Platí {minutes} minúty.',
      other: '. Platí {minutes} minút.',
    },
    closing: '.',
  },
  hu: {
    withName: '{app} ellenőrző kód: {code}',
    withoutName: 'Az Ön ellenőrző kódja: {code}',
    expiry: { other: '. {minutes} percig érvényes.' },
    closing: '.',
  },
  ro: {
    withName: '{code} este codul de verificare {app}',
    withoutName: '{code} este codul de verificare',
    expiry: {
      one: '. Este valabil {minutes} minut.',
      few: '. Este valabil {minutes} minute.',
      other: '. Este valabil {minutes} de minute.',
    },
    closing: '.',
  },
  el: {
    withName: '{app}: ο κωδικός σας είναι {code}',
    withoutName: 'Ο κωδικός σας είναι {code}',
    expiry: { one: '. Λήγει σε {minutes} λεπτό.', other: '. Λήγει σε {minutes} λεπτά.' },
    closing: '.',
  },
  tr: {
    withName: '{app} doğrulama kodunuz: {code}',
    withoutName: 'Doğrulama kodunuz: {code}',
    expiry: { other: '. {minutes} dakika geçerlidir.' },
    closing: '.',
  },
  ru: {
    withName: 'Код подтверждения {app}: {code}',
    withoutName: 'Ваш код подтверждения: {code}',
    expiry: {
      one: '. Действует {minutes} минуту.',
      few: '. Действует {minutes} минуты.',
      other: '. Действует {minutes} минут.',
    },
    closing: '.',
  },
  uk: {
    withName: 'Код підтвердження {app}: {code}',
    withoutName: 'Ваш код підтвердження: {code}',
    expiry: {
      one: '. Дійсний {minutes} хвилину.',
      few: '. Дійсний {minutes} хвилини.',
      other: '. Дійсний {minutes} хвилин.',
    },
    closing: '.',
  },
  ar: {
    withName: '{code} هو رمز التحقق من {app}',
    withoutName: '{code} هو رمز التحقق الخاص بك',
    expiry: {
      one: '. صالح لمدة دقيقة واحدة.',
      two: '. صالح لمدة دقيقتين.',
      few: '. صالح لمدة {minutes} دقائق.',
      other: '. صالح لمدة {minutes} دقيقة.',
    },
    closing: '.',
  },
  he: {
    withName: '{code} הוא קוד האימות שלך ל-{app}',
    withoutName: '{code} הוא קוד האימות שלך',
    expiry: { one: '. בתוקף לדקה אחת.', other: '. בתוקף ל-{minutes} דקות.' },
    closing: '.',
  },
  fa: {
    withName: '{code} کد تأیید {app} شما است',
    withoutName: '{code} کد تأیید شما است',
    expiry: { other: '. تا {minutes} دقیقه معتبر است.' },
    closing: '.',
  },
  hi: {
    withName: '{code} आपका {app} सत्यापन कोड है',
    withoutName: '{code} आपका सत्यापन कोड है',
    expiry: { other: '। {minutes} मिनट तक मान्य है।' },
    closing: '।',
  },
  bn: {
    withName: '{code} আপনার {app} যাচাইকরণ কোড',
    withoutName: '{code} আপনার যাচাইকরণ কোড',
    expiry: { other: '। মেয়াদ {minutes} মিনিট।' },
    closing: '।',
  },
  id: {
    withName: '{code} adalah kode verifikasi {app} Anda',
    withoutName: '{code} adalah kode verifikasi Anda',
    expiry: { other: '. Berlaku selama {minutes} menit.' },
    closing: '.',
  },
  ms: {
    withName: '{code} ialah kod pengesahan {app} anda',
    withoutName: '{code} ialah kod pengesahan anda',
    expiry: { other: '. Sah selama {minutes} minit.' },
    closing: '.',
  },
  vi: {
    withName: '{code} là mã xác minh {app}',
    withoutName: '{code} là mã xác minh của bạn',
    expiry: { other: '. Có hiệu lực trong {minutes} phút.' },
    closing: '.',
  },
  th: {
    withName: '{code} คือรหัสยืนยัน {app} ของคุณ',
    withoutName: '{code} คือรหัสยืนยันของคุณ',
    expiry: { other: ' หมดอายุใน {minutes} นาที' },
    closing: '',
  },
  ja: {
    withName: '{app}の認証コードは{code}です',
    withoutName: '認証コードは{code}です',
    expiry: { other: '。有効期限は{minutes}分です。' },
    closing: '。',
  },
  ko: {
    withName: '[{app}] 인증번호는 {code}입니다',
    withoutName: '인증번호는 {code}입니다',
    expiry: { other: '. {minutes}분간 유효합니다.' },
    closing: '.',
  },
  'zh-CN': {
    withName: '【{app}】您的验证码是{code}',
    withoutName: '您的验证码是{code}',
    expiry: { other: '，{minutes}分钟内有效。' },
    closing: '。',
  },
  'zh-TW': {
    withName: '【{app}】您的驗證碼是{code}',
    withoutName: '您的驗證碼是{code}',
    expiry: { other: '，{minutes}分鐘內有效。' },
    closing: '。',
  },
}
