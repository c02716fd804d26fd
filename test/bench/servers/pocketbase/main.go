// PocketBase as a library, with its one-time passwords by e-mail: `pocketbase serve --dir FOLDER`. Prints its port. GET
// /codes returns, once, the codes sent so far, which a hook catches in place of the mailer. Everything else is its default;
// rate limits are off by default.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/core"
)

// Accounts u0@example.com and so on: only an existing one gets a code.
const users = 20000

type sentCode struct {
	ID       string `json:"otpId"`
	Password string `json:"password"`
}

func main() {
	app := pocketbase.NewWithConfig(pocketbase.Config{HideStartBanner: true})
	var lock sync.Mutex
	codes := []sentCode{}

	app.OnMailerRecordOTPSend().BindFunc(func(event *core.MailerRecordEvent) error {
		lock.Lock()
		defer lock.Unlock()
		codes = append(codes, sentCode{fmt.Sprint(event.Meta["otpId"]), fmt.Sprint(event.Meta["password"])})
		return nil
	})

	app.OnServe().BindFunc(func(event *core.ServeEvent) error {
		if err := createUsers(app); err != nil {
			return err
		}
		event.Router.GET("/codes", func(request *core.RequestEvent) error {
			lock.Lock()
			defer lock.Unlock()
			sent := codes
			codes = []sentCode{}
			return request.JSON(http.StatusOK, sent)
		})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		event.Listener = listener
		// It would print a link to the form for the first administrator.
		event.InstallerFunc = nil
		fmt.Println(listener.Addr().(*net.TCPAddr).Port)
		return event.Next()
	})

	if err := app.Start(); err != nil {
		log.Fatal(err)
	}
}

func createUsers(app core.App) error {
	collection, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return err
	}
	collection.OTP.Enabled = true
	collection.OTP.Length = 6
	collection.AuthAlert.Enabled = false
	if err := app.Save(collection); err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		for i := range users {
			record := core.NewRecord(collection)
			record.Set("email", fmt.Sprintf("u%d@example.com", i))
			record.SetVerified(true)
			record.SetRaw("password", "none")
			record.SetRaw("tokenKey", fmt.Sprintf("%050d", i))
			if err := tx.SaveNoValidate(record); err != nil {
				return err
			}
		}
		return nil
	})
}
