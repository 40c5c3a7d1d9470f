//! Several operations in one call.

use std::sync::{Arc, Mutex};

use mcp_proxy_client::{
    BatchOperation, CallOptions, CapabilityType, ClientError, ProxyAction, ProxyResponseInfo,
};
use serde_json::json;

use crate::plain_server::{clients, object};

#[tokio::test]
async fn results_come_in_order_and_one_that_fails_stops_none() {
    for client in clients().await {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        let options = CallOptions::new().progress(move |progress| {
            reports
                .lock()
                .unwrap()
                .push((progress.progress, progress.total));
        });
        let operations = vec![
            BatchOperation::call(CapabilityType::Tool, "count", None),
            BatchOperation::call(
                CapabilityType::Tool,
                "add",
                Some(object(json!({"a": 1, "b": 1}))),
            ),
            BatchOperation::info(CapabilityType::Tool, "nope"),
            BatchOperation::list(CapabilityType::Prompt),
        ];
        let results = client
            .with_options(options)
            .batch(operations)
            .await
            .unwrap();
        let failed: Vec<_> = results
            .iter()
            .map(|result| result.is_error == Some(true))
            .collect();
        assert_eq!(failed, [false, false, true, false]);
        assert_eq!(results[1].content[0].as_text().unwrap().text, "2");
        let error = ProxyResponseInfo::of_result(&results[2]).unwrap();
        assert_eq!(error.error.as_deref(), Some("not-found"));
        let list = ProxyResponseInfo::of_result(&results[3]).unwrap();
        assert_eq!(
            (list.proxy_action, list.total_count),
            (Some(ProxyAction::List), Some(1))
        );
        let steps = [1.0, 2.0, 3.0, 4.0].map(|step| (step, Some(4.0)));
        assert_eq!(*seen.lock().unwrap(), steps);
    }
}

#[tokio::test]
async fn a_batch_that_is_not_valid_is_not_sent() {
    for client in clients().await {
        let nothing = client.batch(Vec::new()).await;
        assert!(matches!(nothing, Err(ClientError::InvalidArguments(_))));
        let nested =
            BatchOperation::from_arguments(object(json!({"action": "batch", "operations": []})));
        let error = client.batch(vec![nested]).await.unwrap_err();
        let ClientError::InvalidArguments(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.code(), "nested-batch");
    }
}
