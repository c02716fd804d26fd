/** The words of one language for one plural category (CLDR) or more; `other` stands in for those that are not told. */
export type PluralTexts = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }

/**
 * A message is `lead` or, without a name for the application, `plain`, followed by `expiry`, or by `end` where the time
 * is left out.
 */
export type LocaleTexts = { lead: string; plain: string; expiry: PluralTexts; end: string }

/**
 * The messages that otpd brings, by locale. Two rules shape the words: with a name of 20 characters and the minutes a
 * text fits one part, which leaves 44 characters for all other words wherever a language needs UCS-2; and no name needs
 * a grammatical ending. What is read from right to left begins with, or has before the name, a letter of its own script,
 * so that a phone lays the line out that way round (UAX #9, rule P2). Digits are ASCII everywhere: so phones find them.
 */
export const localeTexts: Readonly<Record<string, LocaleTexts>> = {
  en: {
    lead: '{code} is your {app} verification code',
    plain: '{code} is your verification code',
    expiry: { one: '. It expires in {minutes} minute.', other: '. It expires in {minutes} minutes.' },
    end: '.',
  },
  es: {
    lead: '{code} es tu código de {app}',
    plain: '{code} es tu código de verificación',
    expiry: { one: '. Expira en {minutes} minuto.', other: '. Expira en {minutes} minutos.' },
    end: '.',
  },
  pt: {
    lead: '{app}: o seu código é {code}',
    plain: 'O seu código de verificação é {code}',
    expiry: { one: '. Expira em {minutes} minuto.', other: '. Expira em {minutes} minutos.' },
    end: '.',
  },
  'pt-BR': {
    lead: '{app}: seu código é {code}',
    plain: 'Seu código de verificação é {code}',
    expiry: { one: '. Expira em {minutes} minuto.', other: '. Expira em {minutes} minutos.' },
    end: '.',
  },
  fr: {
    lead: '{code} est votre code de vérification {app}',
    plain: '{code} est votre code de vérification',
    expiry: { one: '. Il expire dans {minutes} minute.', other: '. Il expire dans {minutes} minutes.' },
    end: '.',
  },
  de: {
    lead: '{code} ist Ihr Bestätigungscode für {app}',
    plain: '{code} ist Ihr Bestätigungscode',
    expiry: { one: '. Er ist {minutes} Minute gültig.', other: '. Er ist {minutes} Minuten gültig.' },
    end: '.',
  },
  it: {
    lead: '{code} è il tuo codice di verifica {app}',
    plain: '{code} è il tuo codice di verifica',
    expiry: { one: '. Scade tra {minutes} minuto.', other: '. Scade tra {minutes} minuti.' },
    end: '.',
  },
  nl: {
    lead: '{code} is je verificatiecode voor {app}',
    plain: '{code} is je verificatiecode',
    expiry: {
      one: '. Deze verloopt over {minutes} minuut.',
      other: '. Deze verloopt over {minutes} minuten.',
    },
    end: '.',
  },
  sv: {
    lead: '{code} är din verifieringskod för {app}',
    plain: '{code} är din verifieringskod',
    expiry: { one: '. Den gäller i {minutes} minut.', other: '. Den gäller i {minutes} minuter.' },
    end: '.',
  },
  da: {
    lead: '{code} er din bekræftelseskode til {app}',
    plain: '{code} er din bekræftelseskode',
    expiry: { one: '. Den udløber om {minutes} minut.', other: '. Den udløber om {minutes} minutter.' },
    end: '.',
  },
  nb: {
    lead: '{code} er bekreftelseskoden din for {app}',
    plain: '{code} er bekreftelseskoden din',
    expiry: { one: '. Den utløper om {minutes} minutt.', other: '. Den utløper om {minutes} minutter.' },
    end: '.',
  },
  fi: {
    lead: '{app}: vahvistuskoodisi on {code}',
    plain: 'Vahvistuskoodisi on {code}',
    expiry: { other: '. Se vanhenee {minutes} minuutin kuluttua.' },
    end: '.',
  },
  pl: {
    lead: '{code} to Twój kod {app}',
    plain: '{code} to Twój kod weryfikacyjny',
    expiry: {
      one: '. Ważny przez {minutes} minutę.',
      few: '. Ważny przez {minutes} minuty.',
      other: '. Ważny przez {minutes} minut.',
    },
    end: '.',
  },
  cs: {
    lead: '{code} je váš ověřovací kód {app}',
    plain: '{code} je váš ověřovací kód',
    expiry: {
      one: '. Platí {minutes} minutu.',
      few: '. Platí {minutes} minuty.',
      other: '. Platí {minutes} minut.',
    },
    end: '.',
  },
  sk: {
    lead: '{code} je váš overovací kód {app}',
    plain: '{code} je váš overovací kód',
    expiry: {
      one: '. Platí {minutes} minútu.',
      few: '. Platí {minutes} minúty.',
      other: '. Platí {minutes} minút.',
    },
    end: '.',
  },
  hu: {
    lead: '{app} ellenőrző kód: {code}',
    plain: 'Az Ön ellenőrző kódja: {code}',
    expiry: { other: '. {minutes} percig érvényes.' },
    end: '.',
  },
  ro: {
    lead: '{code} este codul de verificare {app}',
    plain: '{code} este codul de verificare',
    expiry: {
      one: '. Este valabil {minutes} minut.',
      few: '. Este valabil {minutes} minute.',
      other: '. Este valabil {minutes} de minute.',
    },
    end: '.',
  },
  el: {
    lead: '{app}: ο κωδικός σας είναι {code}',
    plain: 'Ο κωδικός σας είναι {code}',
    expiry: { one: '. Λήγει σε {minutes} λεπτό.', other: '. Λήγει σε {minutes} λεπτά.' },
    end: '.',
  },
  tr: {
    lead: '{app} doğrulama kodunuz: {code}',
    plain: 'Doğrulama kodunuz: {code}',
    expiry: { other: '. {minutes} dakika geçerlidir.' },
    end: '.',
  },
  ru: {
    lead: 'Код подтверждения {app}: {code}',
    plain: 'Ваш код подтверждения: {code}',
    expiry: {
      one: '. Действует {minutes} минуту.',
      few: '. Действует {minutes} минуты.',
      other: '. Действует {minutes} минут.',
    },
    end: '.',
  },
  uk: {
    lead: 'Код підтвердження {app}: {code}',
    plain: 'Ваш код підтвердження: {code}',
    expiry: {
      one: '. Дійсний {minutes} хвилину.',
      few: '. Дійсний {minutes} хвилини.',
      other: '. Дійсний {minutes} хвилин.',
    },
    end: '.',
  },
  ar: {
    lead: '{code} هو رمز التحقق من {app}',
    plain: '{code} هو رمز التحقق الخاص بك',
    expiry: {
      one: '. صالح لمدة دقيقة واحدة.',
      two: '. صالح لمدة دقيقتين.',
      few: '. صالح لمدة {minutes} دقائق.',
      other: '. صالح لمدة {minutes} دقيقة.',
    },
    end: '.',
  },
  he: {
    lead: '{code} הוא קוד האימות שלך ל-{app}',
    plain: '{code} הוא קוד האימות שלך',
    expiry: { one: '. בתוקף לדקה אחת.', other: '. בתוקף ל-{minutes} דקות.' },
    end: '.',
  },
  fa: {
    lead: '{code} کد تأیید {app} شما است',
    plain: '{code} کد تأیید شما است',
    expiry: { other: '. تا {minutes} دقیقه معتبر است.' },
    end: '.',
  },
  hi: {
    lead: '{code} आपका {app} सत्यापन कोड है',
    plain: '{code} आपका सत्यापन कोड है',
    expiry: { other: '। {minutes} मिनट तक मान्य है।' },
    end: '।',
  },
  bn: {
    lead: '{code} আপনার {app} যাচাইকরণ কোড',
    plain: '{code} আপনার যাচাইকরণ কোড',
    expiry: { other: '। মেয়াদ {minutes} মিনিট।' },
    end: '।',
  },
  id: {
    lead: '{code} adalah kode verifikasi {app} Anda',
    plain: '{code} adalah kode verifikasi Anda',
    expiry: { other: '. Berlaku selama {minutes} menit.' },
    end: '.',
  },
  ms: {
    lead: '{code} ialah kod pengesahan {app} anda',
    plain: '{code} ialah kod pengesahan anda',
    expiry: { other: '. Sah selama {minutes} minit.' },
    end: '.',
  },
  vi: {
    lead: '{code} là mã xác minh {app}',
    plain: '{code} là mã xác minh của bạn',
    expiry: { other: '. Có hiệu lực trong {minutes} phút.' },
    end: '.',
  },
  th: {
    lead: '{code} คือรหัสยืนยัน {app} ของคุณ',
    plain: '{code} คือรหัสยืนยันของคุณ',
    expiry: { other: ' หมดอายุใน {minutes} นาที' },
    end: '',
  },
  ja: {
    lead: '{app}の認証コードは{code}です',
    plain: '認証コードは{code}です',
    expiry: { other: '。有効期限は{minutes}分です。' },
    end: '。',
  },
  ko: {
    lead: '[{app}] 인증번호는 {code}입니다',
    plain: '인증번호는 {code}입니다',
    expiry: { other: '. {minutes}분간 유효합니다.' },
    end: '.',
  },
  'zh-CN': {
    lead: '【{app}】您的验证码是{code}',
    plain: '您的验证码是{code}',
    expiry: { other: '，{minutes}分钟内有效。' },
    end: '。',
  },
  'zh-TW': {
    lead: '【{app}】您的驗證碼是{code}',
    plain: '您的驗證碼是{code}',
    expiry: { other: '，{minutes}分鐘內有效。' },
    end: '。',
  },
}
