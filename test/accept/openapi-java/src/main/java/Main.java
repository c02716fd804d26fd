import otpd.ApiClient;
import otpd.api.ApplicationsApi;
import otpd.api.LoginApi;
import otpd.api.OtpApi;
import otpd.api.ProjectsApi;
import otpd.model.*;

/** Logs in, creates a project and an application, sends a code and verifies it, with the generated client. */
public class Main {
  public static void main(String[] arguments) throws Exception {
    String server = System.getenv("OTPD_URL");
    Tokens tokens =
        new LoginApi(client(server))
            .requestTokens("password", System.getenv("OTPD_EMAIL"), System.getenv("OTPD_PASSWORD"), null, null, null, null, null);

    ApiClient console = client(server);
    console.setRequestInterceptor(
        request -> request.header("authorization", "Bearer " + tokens.getIdToken()));
    Project project =
        new ProjectsApi(console).createProject(new CreateProjectRequest().name("java"), null).getData();
    CreatedApplication application =
        new ApplicationsApi(console)
            .createApplication(
                new CreateApplicationRequest()
                    .name("java")
                    .projectId(project.getId())
                    .environment(Environment.TEST),
                null)
            .getData();

    ApiClient backend = client(server);
    backend.setRequestInterceptor(
        request ->
            request
                .header("x-client-id", application.getClientId())
                .header("x-client-secret", application.getClientSecret())
                .header("x-api-key", application.getApiKey()));
    OtpApi otp = new OtpApi(backend);
    SentOtp sent = otp.sendOtp(new SendOtpRequest().phone("+14155550132"), null).getData();
    VerifiedOtp verified =
        otp.verifyOtp(new VerifyOtpRequest().requestId(sent.getRequestId()).code(sent.getCode())).getData();
    System.out.println("verified " + verified.getPhone());
  }

  private static ApiClient client(String server) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(server);
    return client;
  }
}
