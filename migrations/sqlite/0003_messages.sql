-- What an application says about its messages, all of it optional: the language where a request names none, the host that
-- may fill in the code (WebOTP) and the Android app that may read it (SMS Retriever).
alter table applications add column default_locale text;
alter table applications add column web_otp_domain text;
alter table applications add column android_app_hash text;
