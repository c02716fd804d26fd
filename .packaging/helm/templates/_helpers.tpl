{{- /* Name of every object: that of the Helm release. */ -}}
{{- define "otpd.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "otpd.selector" -}}
app.kubernetes.io/name: otpd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "otpd.labels" -}}
{{ include "otpd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "otpd-%s" .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Refuses values that contradict each other, which the schema cannot see. */ -}}
{{- define "otpd.check" -}}
{{- if not .Values.image.repository }}{{ fail "image.repository is missing: the image of the release in your registry." }}{{ end -}}
{{- if not .Values.publicUrl }}{{ fail "publicUrl is missing, such as https://otp.example.com." }}{{ end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.postgres.secret) -}}
{{- fail "replicas: one process writes the database of SQLite. More need PostgreSQL: set postgres.secret." -}}
{{- end -}}
{{- if and .Values.postgres.ownerSecret (not .Values.postgres.secret) -}}
{{- fail "postgres.ownerSecret needs postgres.secret, the database of the nodes." -}}
{{- end -}}
{{- end -}}

{{- define "otpd.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "otpd.podSettings" -}}
# otpd does not call Kubernetes. Service links would set OTPD_PORT and others,
# which look like settings.
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "otpd.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{- /* The pod of the StatefulSet and of the Deployment. */ -}}
{{- define "otpd.pod" -}}
metadata:
  labels: {{- include "otpd.selector" . | nindent 4 }}
  annotations:
    # A changed configuration restarts the pods.
    checksum/config: {{ .Values.config | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  # A graceful shutdown takes at most ten seconds, after those in which calls are still taken.
  terminationGracePeriodSeconds: {{ if .Values.postgres.secret }}20{{ else }}15{{ end }}
  {{- include "otpd.podSettings" . | nindent 2 }}
  containers:
    - name: otpd
      {{- include "otpd.image" . | nindent 6 }}
      args: [serve, --log-format, json]
      env:
        - { name: OTPD_LISTEN, value: '0.0.0.0:8080' }
        - { name: OTPD_METRICS_LISTEN, value: '0.0.0.0:9464' }
        - { name: OTPD_PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
        {{- with .Values.trustedProxies }}
        - { name: OTPD_TRUSTED_PROXIES, value: {{ . | quote }} }
        {{- end }}
        - { name: OTPD_MASTER_KEY_FILE, value: /run/secrets/otpd/master.key }
        {{- if .Values.postgres.secret }}
        - { name: OTPD_DATABASE_URL_FILE, value: /run/secrets/otpd-database/url }
        - { name: OTPD_NODE, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
        - { name: OTPD_DRAIN_SECONDS, value: '5' }
        {{- if .Values.postgres.ownerSecret }}
        - { name: OTPD_NO_MIGRATE, value: '1' }
        {{- end }}
        {{- else }}
        # A folder in the volume, because otpd makes it private.
        - { name: OTPD_DATA_DIR, value: /var/lib/otpd/data }
        {{- end }}
        {{- with .Values.env }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - { name: http, containerPort: 8080 }
        - { name: metrics, containerPort: 9464 }
      # An upgrade migrates before it is ready: five minutes.
      startupProbe:
        httpGet: { path: /v1/health, port: http }
        periodSeconds: 1
        failureThreshold: 300
      livenessProbe:
        httpGet: { path: /v1/health, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: { path: /v1/health/ready, port: http }
        periodSeconds: {{ if .Values.postgres.secret }}1{{ else }}2{{ end }}
        timeoutSeconds: 2
      resources: {{- toYaml .Values.resources | nindent 8 }}
      {{- include "otpd.containerSecurity" . | nindent 6 }}
      volumeMounts:
        {{- if .Values.postgres.secret }}
        - { name: database, mountPath: /run/secrets/otpd-database, readOnly: true }
        {{- else }}
        - { name: data, mountPath: /var/lib/otpd }
        {{- end }}
        - { name: master-key, mountPath: /run/secrets/otpd, readOnly: true }
        {{- if .Values.config }}
        - { name: config, mountPath: /etc/otpd, readOnly: true }
        {{- end }}
        {{- if .Values.secretFiles }}
        - { name: secret-files, mountPath: /run/secrets/otpd-providers, readOnly: true }
        {{- end }}
        - { name: tmp, mountPath: /tmp }
  volumes:
    - name: master-key
      secret: { secretName: {{ .Values.masterKey.secret | quote }}, defaultMode: 0440 }
    {{- with .Values.postgres.secret }}
    - name: database
      secret: { secretName: {{ . | quote }}, defaultMode: 0440 }
    {{- end }}
    {{- if .Values.config }}
    - name: config
      configMap: { name: {{ include "otpd.name" . }} }
    {{- end }}
    {{- with .Values.secretFiles }}
    - name: secret-files
      secret: { secretName: {{ . | quote }}, defaultMode: 0440 }
    {{- end }}
    - { name: tmp, emptyDir: {} }
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
