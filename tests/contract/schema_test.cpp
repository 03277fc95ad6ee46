// The JSON Schema comes from the validator's table; here it is held against the stored copy and against what is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/contract_table.h"
#include "contract/manifest.h"
#include "contract/metric_names.h"
#include "sample.h"
#include "support/fd.h"

namespace kgate {

namespace {

using Json = nlohmann::json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

// Every object with known keys is closed.
void expect_closed(const Json& schema, const std::string& path) {
  if (schema.contains("properties") && schema.value("type", "") == "object") {
    EXPECT_EQ(schema.value("additionalProperties", Json(true)), Json(false)) << path;
  }
  for (const auto& [key, value] : schema.items())
    if (value.is_structured()) expect_closed(value, path + "/" + key);
}

}  // namespace

TEST(JsonSchema, the_stored_copy_is_the_generated_one) {
  Result<std::string> stored = read_file(std::filesystem::path(KGATE_SOURCE_DIR) / "configs/contract.schema.json");
  ASSERT_TRUE(stored) << stored.failure().what;
  EXPECT_EQ(*stored, contract_json_schema()) << "write contract_json_schema() to configs/contract.schema.json";
}

TEST(JsonSchema, is_draft_7_and_closed) {
  Json schema = Json::parse(contract_json_schema());
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(schema["required"], (Json{"kgate", "kernel"}));
  expect_closed(schema, "");
  expect_closed(Json::parse(manifest_json_schema()), "");
}

TEST(JsonSchema, has_every_row_of_the_table_and_no_other) {
  Json schema = Json::parse(contract_json_schema());
  std::vector<std::string> rows;
  for (const yaml::Field& field : contract_table::kContract.fields) {
    rows.emplace_back(field.key);
    EXPECT_EQ(schema["properties"][field.key]["description"], field.doc);
  }
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(keys(schema["properties"]), rows);
  EXPECT_EQ(schema["properties"]["limits"]["properties"].size(), std::size(kMetricNames));
  EXPECT_EQ(schema["properties"]["tolerance"]["properties"].size(), dtype_names().size());
}

TEST(JsonSchema, items_of_a_replacement_offer_their_keys) {
  Json items = Json::parse(contract_json_schema())["properties"]["replace"]["items"]["properties"]["with"]["items"];
  ASSERT_EQ(items["oneOf"].size(), 4u);
  for (size_t item : {0, 1, 3})
    EXPECT_EQ(items["oneOf"][item]["properties"]["stream"]["enum"], (Json{"legacy"})) << item;
  EXPECT_EQ(items["oneOf"][2]["properties"]["allocate"]["enum"], (Json{"once", "each_launch"}));
}

TEST(JsonSchema, bounds_have_the_unit_of_their_metric) {
  Json limits = Json::parse(contract_json_schema())["properties"]["limits"]["properties"];
  EXPECT_EQ(limits["registers"]["properties"]["max"]["type"], "integer");
  EXPECT_NE(limits["spill_bytes"]["properties"]["max"]["pattern"].get<std::string>().find("KiB"), std::string::npos);
  EXPECT_NE(limits["sync_stall"]["properties"]["max_increase"]["pattern"].get<std::string>().find("us"),
            std::string::npos);
  EXPECT_NE(limits["occupancy"]["properties"]["max"]["pattern"].get<std::string>().find("%"), std::string::npos);
}

// One table, two readers: a key that the validator knows is in the schema, and a value that it refuses names that key.
TEST(JsonSchema, every_metric_takes_a_bound_in_its_unit_and_refuses_another) {
  for (const MetricName& metric : kMetricNames) {
    const char* good[] = {"2us", "3", "64B", "80%"};
    const char* bad[] = {"2", "3us", "64", "80"};
    size_t unit = static_cast<size_t>(metric.unit);
    std::string policy = std::string("kgate: 1\nlimits: {") + metric.id + ": {max: ";
    EXPECT_EQ(problems(policy + good[unit] + "}}\n", true), "") << metric.id;
    EXPECT_NE(problems(policy + bad[unit] + "}}\n", true).find(metric.id), std::string::npos) << metric.id;
  }
}

}  // namespace kgate
